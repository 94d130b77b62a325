use proptest::prelude::*;
use rstest::rstest;

use super::*;

/// A text with one line for each number.
fn lines(numbers: impl IntoIterator<Item = usize>) -> String {
    numbers.into_iter().fold(String::new(), |text, n| text + "line " + &n.to_string() + "\n")
}

/// The new text, made from the old one and a unified diff.
fn patched(old: &str, diff: &str) -> String {
    let old: Vec<_> = old.split_inclusive('\n').collect();
    let (mut new, mut at) = (String::new(), 0);
    let mut rest = diff.split_inclusive('\n').skip_while(|line| !line.starts_with("@@ ")).peekable();
    while let Some(line) = rest.next() {
        if let Some(hunk) = line.strip_prefix("@@ -") {
            let mut range =
                hunk.split(' ').next().unwrap().split(',').map(|number| number.parse::<usize>().unwrap());
            let (first, len) = (range.next().unwrap(), range.next().unwrap_or(1));
            let start = if len == 0 { first } else { first - 1 };
            new.extend(old[at..start].iter().copied());
            at = start;
            continue;
        }
        let ends = rest.peek().is_none_or(|next| !next.starts_with('\\'));
        let text = if ends { &line[1..] } else { &line[1..line.len() - 1] };
        match &line[..1] {
            "+" => new.push_str(text),
            "\\" => {}
            sign => {
                assert_eq!(old[at], text);
                at += 1;
                if sign == " " {
                    new.push_str(text);
                }
            }
        }
    }
    new.extend(old[at..].iter().copied());
    new
}

#[rstest]
#[case::one_at_each_end(lines(0..30_000), lines((1..29_999).chain([7])), (1, 2))]
#[case::every_second(lines((0..15_000).flat_map(|n| [n, 90_000 + n])), lines((0..15_000).flat_map(|n| [n, 60_000 + n])), (15_000, 15_000))]
#[case::all(lines(0..15_000), lines(20_000..35_000), (15_000, 15_000))]
#[case::a_block_moved(lines(0..15_000), lines((5_000..15_000).chain(0..5_000)), (5_000, 5_000))]
fn long_texts_are_compared_around_lines_that_occur_once(
    #[case] old: String,
    #[case] new: String,
    #[case] counts: (usize, usize),
) {
    let compared = Compared::of(&old, &new);
    assert!(compared.is_coarse);
    assert_eq!(compared.counts(), counts);
    assert_eq!(patched(&old, &compared.unified("a", "b")), new);
}

#[test]
fn lines_that_repeat_between_two_that_do_not_are_compared_if_they_are_few() {
    let text = |mark: &str, few: usize| {
        (0..6_000)
            .fold(String::new(), |text, n| text + &format!("only {n}\n{}x\n{mark}\n}}\n", "}\n".repeat(few)))
    };
    let (old, new) = (text("a", 3), text("b", 3));
    assert_eq!(Compared::of(&old, &new).counts(), (6_000, 6_000));
}

#[test]
fn work_has_a_limit() {
    // Two lines in any order: the shortest difference of such texts takes the longest.
    let random = |seed: u64, count: usize| {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 62
        };
        (0..count).fold(String::new(), |text, _| text + if next() % 2 == 0 { "a\n" } else { "b\n" })
    };
    let compared = Compared::of(&random(1, 10_000), &random(2, 10_000)).counts();
    assert!(compared.0 < 4_000, "up to the limit the shortest one is found: {compared:?}");
    let (old, new) = (random(1, 10_100), random(2, 10_100));
    let compared = Compared::of(&old, &new);
    assert!(
        compared.is_coarse && compared.counts().0 > 10_000,
        "above it, no line is compared with many: {:?}",
        compared.counts()
    );
    assert_eq!(patched(&old, &compared.unified("a", "b")), new);
}

/// Lines that repeat, and lines that do not, of a text that is compared coarsely: its comparison is called itself.
fn some_lines() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![0_u32..6, 0_u32..200], 0..120)
}

proptest! {
    #[test]
    fn coarse_comparison_makes_the_new_text(old in some_lines(), new in some_lines()) {
        let mut coarse = Coarse { old: &old, new: &new, ops: Vec::new() };
        coarse.compare(0..old.len(), 0..new.len());
        let (mut old_at, mut new_at) = (0, 0);
        for op in &coarse.ops {
            prop_assert_eq!((op.old_range().start, op.new_range().start), (old_at, new_at));
            (old_at, new_at) = (op.old_range().end, op.new_range().end);
            if op.tag() == DiffTag::Equal {
                prop_assert_eq!(&old[op.old_range()], &new[op.new_range()]);
            }
        }
        prop_assert_eq!((old_at, new_at), (old.len(), new.len()));
    }

    #[test]
    fn diff_makes_the_new_text(old in "([ab]?[\r\n]{0,2}){0,12}", new in "([ab]?[\r\n]{0,2}){0,12}") {
        prop_assert_eq!(patched(&old, &Compared::of(&old, &new).unified("a", "b")), new);
    }
}
