//! What the owner of a borrowed database permits, as questions.

use crate::target::Permissions;

impl Permissions {
    /// Whether a parameter may be changed: it is one of the names, or fits one of the globs (`*`: any number of characters,
    /// `?`: one). Case does not matter, nor do dashes for underscores.
    pub fn permits_parameter(&self, name: &str) -> bool {
        let name = plain(name);
        self.parameters
            .iter()
            .any(|pattern| fits(plain(pattern).as_bytes(), name.as_bytes()))
    }
}

fn plain(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace('-', "_")
}

fn fits(pattern: &[u8], name: &[u8]) -> bool {
    // Where the last star was, and what it has swallowed since: going back there is all that can be tried.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, swallowed)) => {
                    star = Some((at, swallowed + 1));
                    p = at + 1;
                    n = swallowed + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn permissions(patterns: &[&str]) -> Permissions {
        Permissions {
            parameters: patterns.iter().map(|p| (*p).to_owned()).collect(),
            ..Permissions::default()
        }
    }

    #[test]
    fn names_and_globs_permit() {
        let some = permissions(&["max_prepared_stmt_count", "innodb-io*", "sync_?inlog", "*_size"]);
        for name in [
            "max_prepared_stmt_count",
            "MAX-PREPARED-STMT-COUNT",
            "innodb_io_capacity",
            "sync_binlog",
            "sort_buffer_size",
        ] {
            assert!(some.permits_parameter(name), "{name}");
        }
        for name in [
            "max_prepared_stmt_counts",
            "innodb_i",
            "sync_binlogs",
            "sizes",
            "",
        ] {
            assert!(!some.permits_parameter(name), "{name}");
        }
        assert!(!permissions(&[]).permits_parameter("anything"));
    }

    proptest! {
        #[test]
        fn a_star_permits_everything_and_a_name_itself(name in "[a-z_]{1,30}", at in 0usize..30) {
            prop_assert!(permissions(&["*"]).permits_parameter(&name));
            prop_assert!(permissions(&[&name]).permits_parameter(&name));
            let longer = format!("{name}x");
            prop_assert!(!permissions(&[&name]).permits_parameter(&longer));
            let at = at % name.len();
            let starred = format!("{}*{}", &name[..at], &name[at..]);
            prop_assert!(permissions(&[&starred]).permits_parameter(&name));
        }

        #[test]
        fn many_stars_end_soon(stars in 1usize..60, name in "a{60}") {
            let pattern = format!("{}b", "*a".repeat(stars));
            prop_assert!(!permissions(&[&pattern]).permits_parameter(&name));
        }
    }
}
