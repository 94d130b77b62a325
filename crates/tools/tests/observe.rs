//! The files that a tool call touched, from real shapes of arguments and outputs.

use context_tools::{Candidate, Certainty, MAX_FROM_BASH, MAX_LISTED, TouchedFiles, observe};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Map, Value, json};

fn args(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// One line a candidate: R, W or D, the base in brackets, the path; in the order of the lists.
fn show(observation: &TouchedFiles) -> Vec<String> {
    let line = |sign: &str, c: &Candidate| match &c.base {
        Some(base) => format!("{sign} [{base}] {}", c.path),
        None => format!("{sign} {}", c.path),
    };
    let lists = [("R", &observation.reads), ("W", &observation.writes), ("D", &observation.discovered)];
    lists.into_iter().flat_map(|(sign, list)| list.iter().map(move |c| line(sign, c))).collect()
}

#[rstest]
#[case::read("read", json!({"path": "src/a.rs", "offset": 3}), "text", true, &["R src/a.rs"])]
#[case::at_sign("read", json!({"path": "@src/a.rs"}), "text", true, &["R src/a.rs"])]
#[case::other_name("Read", json!({"file_path": "/a/b.rs"}), "text", true, &["R /a/b.rs"])]
#[case::camel_case("Edit", json!({"filePath": "~/b.rs"}), "", true, &["W ~/b.rs"])]
#[case::failed_read("read", json!({"path": "src/a.rs"}), "ENOENT", false, &[])]
#[case::write("write", json!({"path": "a.txt", "content": "see b.txt"}), "Successfully wrote to a.txt", true, &["W a.txt"])]
#[case::edit("edit", json!({"path": "a.txt", "edits": []}), "Successfully replaced 1 block(s) in a.txt.", true, &["W a.txt"])]
#[case::failed_edit("edit", json!({"path": "a.txt"}), "Could not find", false, &[])]
#[case::no_path("read", json!({}), "", true, &[])]
#[case::odd_path("read", json!({"path": ["a"]}), "", true, &[])]
#[case::empty_path("read", json!({"path": " "}), "", true, &[])]
#[case::line_break("read", json!({"path": "a\nb"}), "", true, &[])]
#[case::other_tool("fetch", json!({"path": "a.txt"}), "b.txt", true, &[])]
#[case::ls("ls", json!({}), ".gitignore\nMakefile\nsrc/\na file.txt", true, &["D .gitignore", "D Makefile", "D a file.txt"])]
#[case::ls_of("ls", json!({"path": "pkg", "limit": 2}), "a.rs\nb.rs\n\n[2 entries limit reached. Use limit=4 for more]", true, &["D [pkg] a.rs", "D [pkg] b.rs"])]
#[case::ls_empty("ls", json!({"path": "pkg"}), "(empty directory)", true, &[])]
#[case::ls_failed("ls", json!({"path": "pkg"}), "Path not found: /x/pkg", false, &[])]
#[case::find("find", json!({"pattern": "**/*.rs", "path": "crates"}), "a/src/lib.rs\nb/c/\nd.rs", true, &["D [crates] a/src/lib.rs", "D [crates] d.rs"])]
#[case::find_none("find", json!({"pattern": "x"}), "No files found matching pattern", true, &[])]
#[case::find_cut("find", json!({"pattern": "x"}), "a.rs\n\n[1 results limit reached. 50.0KB limit reached]", true, &["D a.rs"])]
#[case::glob("Glob", json!({"pattern": "*.go"}), "/w/a.go\n/w/b.go", true, &["D /w/a.go", "D /w/b.go"])]
#[case::failed_write("write", json!({"path": "a.txt"}), "EACCES", false, &[])]
#[case::find_failed("find", json!({"pattern": "x"}), "a.rs", false, &[])]
#[case::grep_failed("grep", json!({"pattern": "x"}), "a.rs:1: x", false, &[])]
#[case::object("read", json!({"path": "id=05f49740"}), "text", true, &[])]
#[case::odd_file("read", json!({"path": "id=five"}), "text", true, &["R id=five"])]
#[case::grep("grep", json!({"pattern": "x"}), "src/a.rs:12: let x: u8 = 1;\nsrc/a.rs:14: x\nb.rs:1: x\n\n[100 matches limit reached. Use limit=200 for more, or refine pattern]", true, &["D src/a.rs", "D b.rs"])]
#[case::grep_around("grep", json!({"pattern": "x", "context": 1, "path": "src"}), "a.rs-11- before\na.rs:12: x\na.rs-13- after", true, &["D [src] a.rs"])]
#[case::grep_in_file("grep", json!({"pattern": "x", "path": "src/a.rs"}), "a.rs:12: x", true, &["D src/a.rs", "D [src/a.rs] a.rs"])]
#[case::grep_colons("grep", json!({"pattern": "x"}), "odd:name.rs:3: a:4: x", true, &["D odd:name.rs"])]
#[case::grep_none("grep", json!({"pattern": "x"}), "No matches found", true, &[])]
#[case::grep_unreadable("grep", json!({"pattern": "x"}), "a.bin:3: (unable to read file)", true, &["D a.bin"])]
#[case::grep_paths_alone("Grep", json!({"pattern": "x"}), "Found 2 files\n/w/a.go\n/w/b.go", true, &["D /w/a.go", "D /w/b.go"])]
fn tools(
    #[case] tool: &str,
    #[case] input: Value,
    #[case] output: &str,
    #[case] ok: bool,
    #[case] expected: &[&str],
) {
    let observation = observe(tool, &args(input), output, ok);
    assert_eq!(show(&observation), expected);
    let all = [observation.reads, observation.writes, observation.discovered].concat();
    assert!(all.iter().all(|candidate| candidate.kind == Certainty::Named));
}

#[rstest]
#[case::cat("cat a.txt b", &["R a.txt", "R b"])]
#[case::after_the_options("head -- -n b.md", &["R b.md"])]
#[case::parts("sed -n '1,40p' src/a.rs && head -n 5 b.md | tail -3", &["R src/a.rs", "R b.md"])]
#[case::sed_script_option("sed -n -e 's/a.b/c/' x.txt", &["R x.txt"])]
#[case::sed_in_place("sed -i.bak 's/a/b/' x.txt", &["W x.txt"])]
#[case::perl_in_place("perl -pi -e 's/a/b/' x.txt", &["W x.txt"])]
#[case::awk("awk '{print $1}' data.csv", &["R data.csv"])]
#[case::jq("jq '.a.b' package.json", &["R package.json"])]
#[case::grep("grep -rn 'foo.bar' src/a.rs lib", &["D src/a.rs", "D lib"])]
#[case::grep_with_pattern_option("grep -n -e foo.bar -A 3 src/a.rs", &["D src/a.rs"])]
#[case::change_dir("cd pkg/core && cat src/a.rs", &["R [pkg/core] src/a.rs"])]
#[case::change_dir_twice("cd a; cd ../b && cat c.rs /etc/hosts", &["R [a/../b] c.rs", "R /etc/hosts"])]
#[case::absolute_dir("cd /w/app && npx tsc src/x.ts", &["D [/w/app] src/x.ts"])]
#[case::subshell("(cd a && cat b.rs); cat c.rs", &["R [a] b.rs", "R c.rs"])]
#[case::unknown_dir("cd \"$DIR\" && cat a.rs /b.rs", &["R /b.rs"])]
#[case::empty_dir("cd x && cd '' && cat a.rs /b.rs", &["R /b.rs"])]
#[case::dir_of_a_stack("pushd x; cat b.rs; popd; cat a.rs /b.rs", &["R [x] b.rs", "R /b.rs"])]
#[case::dir_before("cd x && cd - && cat a.rs /b.rs", &["R /b.rs"])]
#[case::dir_of_two_lines("cd 'x\ny' && cat a.rs /b.rs", &["R /b.rs"])]
#[case::root("cd / && cat a.rs", &["R [/] a.rs"])]
#[case::home("cd && cat a.rs", &["R [~] a.rs"])]
#[case::git_dir("git -C sub diff a.rs", &["D [sub] a.rs"])]
#[case::git_restores("git checkout -- a.rs", &["W a.rs"])]
#[case::git_message("git commit -m 'fix a.rs' && git log --oneline -- b.rs", &[])]
#[case::redirections("sort < in.txt > out.txt 2> err.log 2>&1 >> all.log", &["R in.txt", "W out.txt", "W err.log", "W all.log"])]
#[case::no_file("ls > /dev/null 2>&1", &[])]
#[case::tee("make 2>&1 | tee build.log", &["W build.log"])]
#[case::heredoc("cat > a.py <<'EOF'\nopen('b.txt')\ncat c.txt\nEOF\npython a.py", &["W a.py"])]
#[case::here_string("cat <<< notes.txt", &[])]
#[case::copy("cp a.rs b.rs; rm -f e.rs", &["W b.rs", "W b.rs/a.rs", "W e.rs", "D a.rs"])]
#[case::move_into("cd x && mv s/a.rs b.rs lib/", &["W [x] s/a.rs", "W [x] b.rs", "W [x] lib/a.rs", "W [x] lib/b.rs"])]
#[case::copy_of_a_device("cp /dev/null a.log", &["W a.log"])]
#[case::copy_of_unknown("cp *.rs \"$D\" && cp a.rs $D", &["D a.rs"])]
#[case::sed_in_place_bsd("sed -i '' 's/a/b/' x.txt", &["W x.txt"])]
#[case::echo("echo a.txt b.txt > c.txt", &["W c.txt"])]
#[case::urls("curl -sSL https://x.y/a.tar.gz -o out.tar.gz", &["D out.tar.gz"])]
#[case::globs("cat *.rs src/*.ts {a,b}.c", &[])]
#[case::quoted_as_it_stands("cat 'routes/$id.tsx' '{a,b}.c' \"a\\\"b.txt\" '#x' '%20.md'", &["R routes/$id.tsx", "R {a,b}.c", "R a\"b.txt", "R #x", "R %20.md"])]
#[case::signs_before_a_name("cd src && cat +page.svelte @types/x.d.ts && tail +5 a.rs && head '-x'", &["R [src] +page.svelte", "R [src] @types/x.d.ts", "R [src] a.rs"])]
#[case::variables("cat $F ${D}/a.rs \"$D/b.rs\" `pwd`/c.rs $(ls x.rs)", &[])]
#[case::flags("tsc --project=tsconfig.json -p tsconfig.build.json --noEmit", &["D tsconfig.build.json"])]
#[case::modes("chmod 644 a.sh && chmod u+x b.sh", &["D a.sh", "D b.sh"])]
#[case::versions("npm i left-pad@1.3.0 2>&1 && node -v 18.2.1", &[])]
#[case::wrappers("sudo -u me env A=b timeout 10s nice -n 5 cat a.txt", &["R a.txt"])]
#[case::assignment("FOO=bar.txt cat a.txt", &["R a.txt"])]
#[case::loops("for f in a.txt b.txt; do cat \"$f\"; done", &["D a.txt", "D b.txt"])]
#[case::conditions("if [ -f a.txt ]; then cat a.txt; else head b.txt; fi", &["R a.txt", "R b.txt"])]
#[case::program("./run.sh --fast && /usr/bin/env python3 tools/gen.py", &["D ./run.sh", "D /usr/bin/env", "D tools/gen.py"])]
#[case::nested("bash -lc 'cd a && cat b.rs'; cat c.rs", &["R [a] b.rs", "R c.rs"])]
#[case::spaces("cat 'my notes.md' && wc -l './other notes.md'", &["R my notes.md", "D ./other notes.md"])]
#[case::comment("cat a.txt # then b.txt", &["R a.txt"])]
#[case::process_substitution("diff <(cat a.txt) b.txt", &["R a.txt"])]
#[case::folders("ls src/ . .. && mkdir -p a/b.d", &[])]
#[case::written_wins("cat a.txt; echo x >> a.txt", &["W a.txt"])]
#[case::nothing("", &[])]
#[case::unclosed("cat 'a.txt", &["R a.txt"])]
#[case::in_place_in_words("sed --in-place 's/a/b/' x.txt && sed --in-place=.bak 's/a/b/' y.txt", &["W x.txt", "W y.txt"])]
#[case::no_extension("make notes.t,x a.rs", &["D a.rs"])]
#[case::no_space_before_a_redirection("cat a.txt>out.txt 2>b.log", &["R a.txt", "W out.txt", "W b.log"])]
#[case::a_directory_behind("npm run lint y.ts --prefix pkg", &["D [pkg] y.ts"])]
#[case::the_root("cd / && cat a.rs", &["R [/] a.rs"])]
fn commands(#[case] command: &str, #[case] expected: &[&str]) {
    assert_eq!(show(&observe("bash", &args(json!({ "command": command })), "", true)), expected);
}

#[rstest]
#[case::find("find . -name '*.rs'", "./a.rs\n./src/b.rs\n./src", &["D ./a.rs", "D ./src/b.rs", "D ./src"])]
#[case::dir("cd pkg && git ls-files", "a.rs\nsrc/b.rs", &["D [pkg] a.rs", "D [pkg] src/b.rs"])]
#[case::listing("ls", "Makefile\nnotes\nsrc", &["D Makefile", "D notes", "D src"])]
#[case::listing_of("ls -la pkg", "total 8\ndrwxr-xr-x 2 u g 4096 Jan 1 12:00 src\n-rw-r--r-- 1 u g 5 Jan 1 12:00 notes", &["D pkg", "D [pkg] notes"])]
#[case::prose("make", "Building all targets\nDone in 1.2s.\nmade 3 files", &[])]
#[case::compiler("make", "src/a.c:12:5: error: expected ';'\nsrc/a.c:13:1: note: here", &["D src/a.c"])]
#[case::places_in_brackets("make", "src/a.ts(,5): here\nsrc/b.ts(12,5): error\nsrc/c.ts(x): no", &["D src/b.ts"])]
#[case::known("cat a.rs", "mod b;\n// see docs/c.md", &["R a.rs"])]
#[case::unknown_dir("cd $X; find", "a/b.rs\n/c/d.rs", &["D /c/d.rs"])]
#[case::truncated("seq 9", "9\n\n[Showing lines 1-2 of 3. Full output: /tmp/pi-bash-1.log]", &[])]
fn outputs(#[case] command: &str, #[case] output: &str, #[case] expected: &[&str]) {
    let observation = observe("bash", &args(json!({ "command": command })), output, false);
    assert_eq!(show(&observation), expected);
}

#[test]
fn paths_from_an_output_are_bounded() {
    let many: String = (0..5_000).map(|i| format!("src/file{i}.rs\n")).collect();
    assert_eq!(observe("find", &args(json!({})), &many, true).len(), MAX_LISTED);
    assert_eq!(observe("bash", &args(json!({ "command": "find src" })), &many, true).len(), MAX_FROM_BASH);
    let command = json!({ "command": format!("cat {}", many.replace('\n', " ")) });
    assert_eq!(observe("bash", &args(command), &many, true).reads.len(), MAX_FROM_BASH);
    let deep = (0..6).fold("cat a.txt".to_owned(), |inner, _| format!("bash -c {inner:?}"));
    assert!(observe("bash", &args(json!({ "command": deep })), "", true).is_empty());
}

/// Pieces that shells and listings are made of, and whatever else a string can hold.
fn noise() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[a-z./_-]{1,12}",
        2 => prop::sample::select(vec![
            " ", "\n", " && ", "; ", " | ", "cd ", "cat ", "ls ", "sed -i ", "git -C ", "bash -c ", "<<EOF\n", "\nEOF\n",
            "'", "\"", "\\", "$(", ")", "(", "`", "${", "}", "> ", "2>&1", "< ", "<(", "#", "*", ":12: ", ":3:4", " -> ",
            "--> ", "+++ b/", " | ", "@", "~", "//", "File \"", "-rw-r--r-- 1 u g 5 Jan 1 12:00 ", "\n\n[", "]",
        ]).prop_map(str::to_owned),
        1 => "(?s).{0,6}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_input_gives_a_bounded_answer(
        tool in prop::sample::select(vec!["read", "write", "edit", "ls", "find", "grep", "bash", "other"]),
        path in noise(), command in noise(), output in noise(), ok: bool,
    ) {
        let input = args(json!({ "path": path, "command": command }));
        let observation = observe(tool, &input, &output, ok);
        prop_assert_eq!(&observation, &observe(tool, &input, &output, ok), "it depends on nothing else");
        let most = if tool == "bash" { MAX_FROM_BASH } else { MAX_LISTED };
        prop_assert!(observation.len() <= most);
        let all = [observation.reads, observation.writes, observation.discovered].concat();
        for candidate in &all {
            prop_assert!(!candidate.path.trim().is_empty() && !candidate.path.contains(['\n', '\0']));
            prop_assert!(candidate.base.as_ref().is_none_or(|base| !base.is_empty() && !base.contains('\n')));
            let absolute = candidate.path.starts_with('/');
            prop_assert!(candidate.kind == Certainty::Named || !absolute || candidate.base.is_none());
        }
        let distinct: std::collections::HashSet<_> = all.iter().map(|c| (&c.path, &c.base)).collect();
        prop_assert_eq!(distinct.len(), all.len());
    }

    /// Any file name that a shell can be given in quotes is found again.
    #[test]
    fn a_quoted_file_is_found(name in "[a-zA-Zéß0-9_. -]{1,20}", dir in "[a-z]{1,8}") {
        let path = format!("{dir}/{name}x");
        let observation = observe("bash", &args(json!({ "command": format!("cd {dir} && cat './{path}'") })), "", true);
        prop_assert_eq!(show(&observation), vec![format!("R [{dir}] ./{path}")]);
    }
}

/// The effect of shells and their tools on the words of a command.
#[rstest]
#[case::a_listing_and_more("ls src && echo done", "a.ts\n", &["D src", "D a.ts"])]
#[case::a_program_in_a_file("jq -f prog.jq data.json", "", &["R data.json"])]
#[case::several_into_a_folder("cp a.ts b.ts out", "", &["W out/a.ts", "W out/b.ts", "D a.ts", "D b.ts"])]
#[case::quoted_into_a_folder("cp '$id.tsx' b/", "", &["W b/$id.tsx", "D $id.tsx"])]
#[case::quoted_to_another("mv '[id].tsx' '$slug.tsx'", "", &["W [id].tsx", "W $slug.tsx", "W $slug.tsx/[id].tsx"])]
#[case::with_a_sign("cp +page.svelte @types/a.ts out", "", &["W out/+page.svelte", "W out/a.ts", "D +page.svelte", "D @types/a.ts"])]
#[case::one_to_another("cp a.ts b.ts", "", &["W b.ts", "W b.ts/a.ts", "D a.ts"])]
#[case::a_subcommand_with_a_dot("git do.it a.ts", "", &["D a.ts"])]
#[case::a_shells_own_options("bash --norc run.sh", "", &["D run.sh"])]
#[case::a_traced_script("bash -x run.sh", "", &["D run.sh"])]
#[case::a_shell_in_a_shell("sh -c \"sh -c 'cat a.ts'\"", "", &["R a.ts"])]
#[case::too_deep("sh -c \"sh -c 'sh -c \\\"cat a.ts\\\"'\"", "", &[])]
#[case::a_word_with_a_comma_in_quotes("deploy './a,b'", "", &[])]
#[case::words_in_quotes("deploy 'word' './my file' 'my file'", "", &["D ./my file"])]
fn words_of_commands(#[case] command: &str, #[case] output: &str, #[case] expected: &[&str]) {
    let observed = observe("bash", &args(json!({ "command": command })), output, true);
    assert_eq!(show(&observed), expected);
}

#[rstest]
fn failed_tool_touches_no_files(#[values("read", "write", "edit", "ls", "find", "glob", "grep")] tool: &str) {
    let input = args(json!({ "path": "src/a.rs" }));
    for (ok, is_empty) in [(true, false), (false, true)] {
        assert_eq!(observe(tool, &input, "b.rs:1: x", ok).is_empty(), is_empty, "{tool}");
    }
}
