//! The secrets in one text.

use super::rules::{self, Secret};

/// Shorter texts are left alone: they also occur in many unrelated places.
const SHORTEST: usize = 6;

/// The rule for values that look random beside a name such as `password`. If another rule also finds a secret, the secret
/// has that rule's name.
const GENERIC: &str = "generic-api-key";

/// The secrets in a text, in order and without overlaps. `path` is that of the file whose text it is: some rules are for
/// files with certain names.
///
/// If several rules find something at one place, it is one secret. It has the name of the rule that found its
/// beginning, unless that is the one for any random value beside a telling name.
#[must_use]
pub fn in_text(text: &str, path: Option<&str>) -> Vec<Secret> {
    let mut found = rules::find(text, path);
    found.retain(|secret| text[secret.range.clone()].trim().len() >= SHORTEST);
    found.sort_by(|a, b| {
        a.range.start.cmp(&b.range.start).then(b.range.end.cmp(&a.range.end)).then(a.rule.cmp(b.rule))
    });
    let mut secrets: Vec<Secret> = Vec::with_capacity(found.len());
    for secret in found {
        match secrets.last_mut().filter(|last| secret.range.start < last.range.end) {
            Some(last) => {
                last.range.end = last.range.end.max(secret.range.end);
                if last.rule == GENERIC {
                    last.rule = secret.rule;
                }
            }
            None => secrets.push(secret),
        }
    }
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_itself_is_named_and_nothing_around_it() {
        // Put together here, so that no scanner takes this file for a leak.
        let key = format!("AKIA{}", "Y3FDSAOQ5TGX2WLB");
        let text = format!("first\nexport AWS_ACCESS_KEY_ID={key}\nlast AKIAIOSFODNN7EXAMPLE\n");
        let found = in_text(&text, None);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].rule, &text[found[0].range.clone()]), ("aws-access-token", &*key));
    }

    #[test]
    fn a_rule_for_certain_files_is_for_those_only() {
        let text = format!("admin_password = \"{}\"\n", "kqz8Wv-Lm2r");
        let rules = |path| in_text(&text, path).into_iter().map(|secret| secret.rule).collect::<Vec<_>>();
        assert!(rules(Some("/infra/main.tf")).contains(&"hashicorp-tf-password"));
        assert!(!rules(Some("/infra/main.rs")).contains(&"hashicorp-tf-password"));
        assert!(!rules(None).contains(&"hashicorp-tf-password"));
    }

    #[test]
    fn a_specific_rule_wins_over_the_generic_one() {
        let token = format!("gh{}{}", "p_", "q9Zr4mXw82Lp0TbK1vYc7NdE5sHu3FgJ6aRi");
        for (text, rule) in [
            (format!("TOKEN={token}\n"), "github-pat"),
            ("TOKEN=q9Zr4mXw82Lp0TbK1vYc7NdE5sHu\n".into(), "generic-api-key"),
        ] {
            let found = in_text(&text, None);
            assert_eq!(found.iter().map(|secret| secret.rule).collect::<Vec<_>>(), [rule], "{text}");
        }
    }
}
