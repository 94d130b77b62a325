//! The part of EDN that XTDB's answers use. No other format that XTDB offers has times with milliseconds.

use context_model::time::Timestamp;

/// A value in an EDN text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edn {
    /// `nil`, a boolean, a number, a character or a symbol, as it was written.
    Atom(String),
    /// A string.
    Text(String),
    /// A keyword, without its colon.
    Keyword(String),
    /// A list, vector or set.
    List(Vec<Edn>),
    /// A map.
    Map(Vec<(Edn, Edn)>),
    /// A tagged value, for instance `#inst "…"`.
    Tagged(String, Box<Edn>),
}

impl Edn {
    /// Reads one value. `None` if the text is not EDN, or has more levels than any answer of XTDB.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut reader = EdnReader { text, at: 0, depth: 0 };
        let value = reader.value()?;
        reader.skip();
        (reader.at == text.len()).then_some(value)
    }

    /// A map's value for a keyword.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Map(entries) = self else { return None };
        entries.iter().find(|(key, _)| matches!(key, Self::Keyword(k) if k == name)).map(|(_, value)| value)
    }

    /// The elements of a list, vector or set.
    pub(crate) fn items(&self) -> Option<&[Self]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    /// A non-negative whole number.
    pub(crate) fn number(&self) -> Option<u64> {
        if let Self::Atom(text) = self { text.parse().ok() } else { None }
    }

    /// A moment: `#inst "…"`.
    pub(crate) fn time(&self) -> Option<Timestamp> {
        match self {
            Self::Tagged(tag, value) if tag == "inst" => match &**value {
                Self::Text(text) => text.replace("-00:00", "Z").parse().ok(),
                _ => None,
            },
            _ => None,
        }
    }
}

pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The most levels of lists, maps and tags that a value has.
const MOST_LEVELS: usize = 128;

struct EdnReader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl EdnReader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                ';' => while self.next().is_some_and(|c| c != '\n') {},
                c if c.is_whitespace() || c == ',' => {
                    self.next();
                }
                _ => break,
            }
        }
    }

    fn value(&mut self) -> Option<Edn> {
        self.depth += 1;
        let value = if self.depth > MOST_LEVELS { None } else { self.value_here() };
        self.depth -= 1;
        value
    }

    fn value_here(&mut self) -> Option<Edn> {
        self.skip();
        match self.peek()? {
            '"' => self.string().map(Edn::Text),
            '(' => self.list(')'),
            '[' => self.list(']'),
            '{' => {
                let Edn::List(items) = self.list('}')? else { return None };
                let mut entries = Vec::with_capacity(items.len() / 2);
                let mut items = items.into_iter();
                while let Some(key) = items.next() {
                    entries.push((key, items.next()?));
                }
                Some(Edn::Map(entries))
            }
            '#' => {
                self.next();
                if self.peek()? == '{' {
                    return self.list('}');
                }
                let tag = self.word();
                Some(Edn::Tagged(tag, Box::new(self.value()?)))
            }
            ':' => {
                self.next();
                Some(Edn::Keyword(self.word()))
            }
            '\\' => {
                self.next();
                let mut text = self.next()?.to_string();
                text.push_str(&self.word());
                Some(Edn::Atom(format!("\\{text}")))
            }
            ')' | ']' | '}' => None,
            _ => Some(Edn::Atom(self.word())),
        }
    }

    fn list(&mut self, end: char) -> Option<Edn> {
        self.next();
        let mut items = Vec::new();
        loop {
            self.skip();
            if self.peek()? == end {
                self.next();
                return Some(Edn::List(items));
            }
            items.push(self.value()?);
        }
    }

    fn word(&mut self) -> String {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|c: char| {
                c.is_whitespace() || matches!(c, ',' | '"' | '(' | ')' | '[' | ']' | '{' | '}' | ';')
            })
            .unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_owned()
    }

    fn string(&mut self) -> Option<String> {
        self.next();
        let mut text = String::new();
        loop {
            match self.next()? {
                '"' => return Some(text),
                '\\' => match self.next()? {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'b' => text.push('\u{8}'),
                    'f' => text.push('\u{c}'),
                    'u' => {
                        let code = self.text.get(self.at..self.at + 4)?;
                        self.at += 4;
                        text.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
                    }
                    c => text.push(c),
                },
                c => text.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_recorded_history_is_read_with_its_milliseconds() {
        let text = r#"({:xtdb.api/tx-time #inst "2026-11-21T09:06:09.940-00:00", :xtdb.api/tx-id 502, :xtdb.api/valid-time #inst "2020-01-01T00:00:00.789-00:00", :xtdb.api/content-hash #xtdb/id "9c4db11bcac39fc5273e24db914608de396c8afc"})"#;
        let value = Edn::read(text).unwrap();
        let row = &value.items().unwrap()[0];
        assert_eq!(row.get("xtdb.api/tx-id").unwrap().number(), Some(502));
        let time = row.get("xtdb.api/valid-time").unwrap().time().unwrap();
        assert_eq!(time.to_string(), "2020-01-01T00:00:00.789Z");
    }

    #[rstest]
    #[case("{:a}")]
    #[case("(1 2")]
    #[case("\"open")]
    #[case("")]
    #[case("{:a 1} 2")]
    #[case("<html>]")]
    fn refuses_text_that_is_not_edn(#[case] text: &str) {
        assert_eq!(Edn::read(text), None);
    }

    /// Without an end, as a hostile server sends it, or with one.
    #[rstest]
    #[case("[", "]")]
    #[case("(", ")")]
    #[case("{", "}")]
    #[case("#{", "}")]
    #[case("#a ", "1")]
    #[case("[#a {:k ", "}]")]
    fn deep_values_are_refused_and_end_nothing(#[case] begin: &str, #[case] end: &str) {
        for levels in [129, 100_000] {
            assert_eq!(Edn::read(&begin.repeat(levels)), None);
            assert_eq!(Edn::read(&format!("{}{}", begin.repeat(levels), end.repeat(levels))), None);
        }
        let text = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(Edn::read(&text).is_some());
    }

    proptest! {
        #[test]
        fn a_quoted_text_is_read_back(text in any::<String>()) {
            prop_assert_eq!(Edn::read(&quote(&text)), Some(Edn::Text(text)));
        }

        #[test]
        fn no_text_makes_the_reader_fail(text in "[\\[\\](){}#:\\\\\"a1 ,;é]{0,40}") {
            let _ = Edn::read(&text);
        }
    }
}
