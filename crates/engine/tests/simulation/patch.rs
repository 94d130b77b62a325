//! Applying a unified difference, as a reader of it would.

/// The text after a difference; `None` where it does not fit the text before it.
pub fn applied(old: &str, diff: &str) -> Option<String> {
    let before: Vec<&str> = old.split_inclusive('\n').collect();
    let mut after = String::new();
    let mut at = 0;
    let mut lines = diff.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("--- ") || line.starts_with("+++ ") {
            continue;
        }
        let (from, removed, added) = hunk(line)?;
        if from < at {
            return None;
        }
        before.get(at..from)?.iter().for_each(|line| after.push_str(line));
        at = from;
        let (mut left_old, mut left_new) = (removed, added);
        while left_old > 0 || left_new > 0 {
            let line = lines.next()?;
            let (mark, text) = line.split_at_checked(1)?;
            let bare = lines.peek().is_some_and(|next| next.starts_with('\\'));
            let text = if bare { text.strip_suffix('\n')? } else { text };
            if bare {
                lines.next();
            }
            if mark != "+" {
                if before.get(at) != Some(&text) {
                    return None;
                }
                at += 1;
                left_old = left_old.checked_sub(1)?;
            }
            if mark != "-" {
                after.push_str(text);
                left_new = left_new.checked_sub(1)?;
            }
        }
    }
    before.get(at..)?.iter().for_each(|line| after.push_str(line));
    Some(after)
}

/// The first old line (from 0), and how many old and new lines a hunk has.
fn hunk(line: &str) -> Option<(usize, usize, usize)> {
    let inner = line.strip_prefix("@@ -")?.split(" @@").next()?;
    let (old, new) = inner.split_once(" +")?;
    let range = |text: &str| -> Option<(usize, usize)> {
        let (first, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((first.parse().ok()?, count.parse().ok()?))
    };
    let ((first, removed), (_, added)) = (range(old)?, range(new)?);
    // An empty range names the line before it.
    Some((if removed == 0 { first } else { first.checked_sub(1)? }, removed, added))
}

#[test]
fn a_difference_leads_from_the_old_text_to_the_new_one() {
    let texts =
        ["", "a\n", "a", "a\nb\nc\nd\ne\nf\ng\nh\ni\n", "a\nb\nc\nX\ne\nf\ng\nh\ni", "b\nc\n", "x\ny\n"];
    for old in texts {
        for new in texts.into_iter().filter(|new| *new != old) {
            let diff = similar::TextDiff::from_lines(old, new)
                .unified_diff()
                .context_radius(3)
                .header("old", "new")
                .to_string();
            assert_eq!(applied(old, &diff).as_deref(), Some(new), "{diff}");
            assert_ne!(applied(&format!("z\n{old}"), &diff).as_deref(), Some(new));
        }
    }
}
