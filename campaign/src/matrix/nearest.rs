//! The name that somebody probably meant.

/// The candidate nearest to `name` by edit distance, if it is near enough to be a slip.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = name.len() / 3 + 1;
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and replacements from one text to the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_a_slip_and_nothing_else() {
        let scripts = ["oltp_read_only", "oltp_read_write", "bulk_insert"];
        assert_eq!(nearest("oltp_readonly", scripts), Some("oltp_read_only"));
        assert_eq!(nearest("oltp-read-write", scripts), Some("oltp_read_write"));
        assert_eq!(nearest("tpcc", scripts), None);
    }
}
