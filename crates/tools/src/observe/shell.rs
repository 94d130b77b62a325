//! A shell command as words and operators, as far as necessary to find file names (POSIX.1-2024, Shell Command Language, 2.2
//! to 2.10). Nothing is expanded; a word that would be is marked.

/// A piece of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// `;`, `&`, `&&`, a line feed.
    End,
    /// `|`; two of them for `||`.
    Pipe,
    /// `(`, also of a process substitution.
    Open,
    /// `)`
    Close,
    /// `<`: the next word is read.
    Input,
    /// `>`, `>>`, `>|`, `&>`: the next word is written.
    Output,
    /// `<<<`, `>&`, `<&`: the next word is not a file.
    Skip,
}

/// A word without its quotes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Word {
    pub(super) text: String,
    /// Part of it was quoted or escaped.
    pub(super) quoted: bool,
    /// A variable, a command substitution or an unquoted pattern would change it.
    pub(super) expands: bool,
}

/// The tokens of a command, up to `max` of them. Here-documents are left out; unclosed quotes end with the text.
pub(super) fn tokens(command: &str, max: usize) -> Vec<Token> {
    let mut lexer =
        Lexer { rest: command, tokens: Vec::new(), word: None, heredocs: Vec::new(), ends_heredoc: None };
    while lexer.tokens.len() < max && lexer.step() {}
    lexer.end_word();
    lexer.tokens
}

struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
    word: Option<Word>,
    /// Here-documents whose bodies begin after this line: the delimiter, and whether tabs are stripped.
    heredocs: Vec<(String, bool)>,
    /// The next word is a here-document's delimiter; tabs are stripped or not.
    ends_heredoc: Option<bool>,
}

impl Lexer<'_> {
    /// Takes one character, together with what belongs to it. False at the end.
    fn step(&mut self) -> bool {
        let Some(c) = self.next() else { return false };
        match c {
            ' ' | '\t' | '\r' => self.end_word(),
            '\n' => {
                self.operator(Token::End);
                self.skip_heredocs();
            }
            '#' if self.word.is_none() => {
                self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..]
            }
            ';' => self.operator(Token::End),
            '|' => self.operator(Token::Pipe),
            '&' if self.rest.starts_with('>') => {
                self.rest = self.rest.trim_start_matches('>');
                self.operator(Token::Output);
            }
            '&' => self.operator(Token::End),
            '(' => self.operator(Token::Open),
            ')' => self.operator(Token::Close),
            '<' | '>' => self.redirection(c),
            '\'' => {
                let end = self.rest.find('\'').unwrap_or(self.rest.len());
                let text = &self.rest[..end];
                self.quoted().text.push_str(text);
                self.skip(end + 1);
            }
            '"' => self.double_quotes(),
            '\\' => match self.next() {
                Some('\n') | None => {}
                Some(c) => self.quoted().text.push(c),
            },
            '$' => self.dollar(),
            '`' => self.backticks(),
            '*' | '?' | '{' | '}' | '[' => {
                let word = self.word.get_or_insert_default();
                word.expands = true;
                word.text.push(c);
            }
            c => self.word.get_or_insert_default().text.push(c),
        }
        true
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// Skips this many bytes, at most to the end. Only called at character boundaries.
    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or("");
    }

    fn quoted(&mut self) -> &mut Word {
        let word = self.word.get_or_insert_default();
        word.quoted = true;
        word
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take() {
            match self.ends_heredoc.take() {
                Some(tabs) => self.heredocs.push((word.text, tabs)),
                None => self.tokens.push(Token::Word(word)),
            }
        }
    }

    fn operator(&mut self, token: Token) {
        self.end_word();
        self.ends_heredoc = None;
        self.tokens.push(token);
    }

    fn redirection(&mut self, c: char) {
        // 2> and 0<: the number is that of the stream and not a word.
        let number =
            |word: &Word| !word.quoted && !word.expands && word.text.bytes().all(|b| b.is_ascii_digit());
        if self.word.as_ref().is_some_and(number) {
            self.word = None;
        }
        self.end_word();
        for (start, token) in [
            ("<<", Token::Skip),
            ("<-", Token::Input),
            ("<", Token::Input),
            ("(", Token::Open),
            ("&", Token::Skip),
            (">", Token::Output),
            ("|", Token::Output),
        ] {
            if !self.rest.starts_with(start) {
                continue;
            }
            self.skip(start.len());
            match (c, start) {
                ('<', "<-" | "<") => self.ends_heredoc = Some(start == "<-"),
                _ => self.operator(token),
            }
            return;
        }
        self.operator(if c == '<' { Token::Input } else { Token::Output });
    }

    fn double_quotes(&mut self) {
        self.quoted();
        while let Some(c) = self.next() {
            match c {
                '"' => return,
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(c @ ('"' | '\\' | '$' | '`')) => self.quoted().text.push(c),
                    Some(c) => self.quoted().text.extend(['\\', c]),
                },
                '$' => self.dollar(),
                '`' => self.backticks(),
                c => self.quoted().text.push(c),
            }
        }
    }

    fn dollar(&mut self) {
        let word = self.word.get_or_insert_default();
        match self.rest.chars().next() {
            Some('(') => {
                word.expands = true;
                self.rest = after_parenthesis(self.rest);
            }
            Some('{') => {
                word.expands = true;
                self.skip(self.rest.find('}').map_or(self.rest.len(), |at| at + 1));
            }
            Some(c) if c.is_ascii_alphanumeric() || "_@*#?$!-".contains(c) => {
                word.expands = true;
                self.skip(1);
            }
            // $'...' and $"..." are quotes.
            Some('\'' | '"') => {}
            _ => word.text.push('$'),
        }
    }

    fn backticks(&mut self) {
        self.word.get_or_insert_default().expands = true;
        self.skip(self.rest.find('`').map_or(self.rest.len(), |at| at + 1));
    }

    fn skip_heredocs(&mut self) {
        for (delimiter, tabs) in std::mem::take(&mut self.heredocs) {
            while !self.rest.is_empty() {
                let line = self.rest.split('\n').next().unwrap_or("");
                self.skip(line.len() + 1);
                let line = if tabs { line.trim_start_matches('\t') } else { line };
                if line == delimiter {
                    break;
                }
            }
        }
    }
}

/// The rest after the parenthesis that closes the one at the start, taking quotes into account.
fn after_parenthesis(text: &str) -> &str {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (at, c) in text.char_indices() {
        match (escaped, quote, c) {
            (true, ..) => escaped = false,
            (false, None | Some('"'), '\\') => escaped = true,
            (false, Some(open), c) if open == c => quote = None,
            (false, None, '\'' | '"') => quote = Some(c),
            (false, None, '(') => depth += 1,
            (false, None, ')') => {
                depth -= 1;
                if depth == 0 {
                    return &text[at + 1..];
                }
            }
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    /// Words unchanged, with `?` before one that would be expanded; operators as a sign.
    fn show(command: &str) -> String {
        let show = |token: Token| match token {
            Token::Word(word) => format!("{}[{}]", if word.expands { "?" } else { "" }, word.text),
            Token::End => ";".to_owned(),
            Token::Pipe => "|".to_owned(),
            Token::Open => "(".to_owned(),
            Token::Close => ")".to_owned(),
            Token::Input => "<".to_owned(),
            Token::Output => ">".to_owned(),
            Token::Skip => "~".to_owned(),
        };
        tokens(command, 1_000).into_iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[rstest]
    #[case("cat a.txt  b.txt", "[cat] [a.txt] [b.txt]")]
    #[case("cat 'a b' \"c d\" e\\ f g'h'\"i\"", "[cat] [a b] [c d] [e f] [ghi]")]
    #[case("cd x && ls; a | b || c & d", "[cd] [x] ; ; [ls] ; [a] | [b] | | [c] ; [d]")]
    #[case("a >b 2>c >>d <e 2>&1 &>f >|g", "[a] > [b] > [c] > [d] < [e] ~ [1] > [f] > [g]")]
    #[case("a 2>&1 | tee b", "[a] ~ [1] | [tee] [b]")]
    #[case("cat <<EOF\nx.txt 'y\nEOF\nls", "[cat] ; [ls]")]
    #[case("cat <<-'E F' > o\n\tx\n\tE F\nls", "[cat] > [o] ; [ls]")]
    #[case("cat <<A <<B\n1\nA\n2\nB\nls", "[cat] ; [ls]")]
    #[case("cat <<EOF\nnever closed", "[cat] ;")]
    #[case("cat <<<word", "[cat] ~ [word]")]
    #[case("diff <(a b) c", "[diff] ( [a] [b] ) [c]")]
    #[case("(cd x; ls)", "( [cd] [x] ; [ls] )")]
    #[case("cat $X ${Y}/b \"$Z\" '$W' a$", "[cat] ?[] ?[/b] ?[] [$W] [a$]")]
    #[case("cat $(ls 'a)' \"b)\" (c)) d `e f` g", "[cat] ?[] [d] ?[] [g]")]
    #[case("echo \"$(a \"b\")\" c", "[echo] ?[] [c]")]
    #[case("ls *.rs a?b '*.c' {a,b}", "[ls] ?[*.rs] ?[a?b] [*.c] ?[{a,b}]")]
    #[case("ls # a comment > x\nb", "[ls] ; [b]")]
    #[case("a#b", "[a#b]")]
    #[case("a \\\n b", "[a] [b]")]
    #[case("'unclosed", "[unclosed]")]
    #[case("\"unclosed", "[unclosed]")]
    #[case("$(unclosed", "?[]")]
    #[case("a\\", "[a]")]
    #[case("", "")]
    fn lexing(#[case] command: &str, #[case] expected: &str) {
        assert_eq!(show(command), expected);
    }

    proptest! {
        #[test]
        fn any_text_lexes(command in "(?s)([a-z ./]|[\"'`$(){}<>|&;\\\\#*\n]|<<E|\nE\n|é|\\PC){0,200}", max in 0_usize..100) {
            let all = tokens(&command, usize::MAX);
            prop_assert!(all.len() <= 2 * command.len() + 1);
            // One step can end a word and add an operator.
            prop_assert!(tokens(&command, max).len() <= max + 2);
        }

        #[test]
        fn quoted_words_come_back(words in prop::collection::vec("[^'\0]{1,20}", 1..8)) {
            let command = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
            let back: Vec<String> = tokens(&command, usize::MAX).into_iter().filter_map(|token| match token {
                Token::Word(word) => Some(word.text),
                _ => None,
            }).collect();
            prop_assert_eq!(back, words);
        }
    }

    #[rstest]
    #[case::a_number_in_quotes_is_a_word("echo '2'>out", "[echo] [2] > [out]")]
    #[case::a_dollar_before_nothing_special("echo a$/b $", "[echo] [a$/b] [$]")]
    #[case::quotes_after_a_dollar("cat $'a b' $\"c d\"", "[cat] [a b] [c d]")]
    fn words_with_quotes_and_dollars(#[case] command: &str, #[case] expected: &str) {
        assert_eq!(show(command), expected);
    }

    #[rstest]
    #[case("(a) b", " b")]
    #[case("(a (b) c) d", " d")]
    #[case("(\\) a) b", " b")]
    #[case("(\"\\\") a\" ) b", " b")]
    #[case("(')' ) b", " b")]
    #[case("(a", "")]
    fn parenthesis_ends_a_command(#[case] text: &str, #[case] rest: &str) {
        assert_eq!(after_parenthesis(text), rest);
    }

    #[test]
    fn token_count_has_a_limit() {
        assert_eq!(tokens("a b c d", 2).len(), 2);
        assert_eq!(tokens("a b", 2).len(), 2);
    }
}
