//! Which flavour of its engine a server is.

/// The flavour by version and comment.
pub fn flavour(version: &str, comment: &str) -> &'static str {
    let text = format!("{version} {comment}").to_ascii_lowercase();
    [
        ("mariadb", "MariaDB"),
        ("percona", "Percona"),
        ("taurus", "TaurusDB"),
        ("enterprise", "MySQL Enterprise"),
    ]
    .into_iter()
    .find(|(word, _)| text.contains(word))
    .map_or("MySQL", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavours_are_told_by_version_and_comment() {
        assert_eq!(flavour("10.11.19-MariaDB-0+deb12u1", "Debian 12"), "MariaDB");
        assert_eq!(
            flavour("8.0.36-28", "Percona Server (GPL), Release 28"),
            "Percona"
        );
        assert_eq!(flavour("8.0.41", "MySQL Community Server - GPL"), "MySQL");
        assert_eq!(
            flavour("8.0.41-commercial", "MySQL Enterprise Server - Commercial"),
            "MySQL Enterprise"
        );
    }
}
