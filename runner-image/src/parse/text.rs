//! Captured bytes as lines: whatever the encoding, line ends and interleaving, no byte sequence is refused.
//! It splits and cleans; it does not interpret.

/// Bytes as text: UTF-8, or UTF-16 with a byte order mark (a redirect in some shells); junk becomes U+FFFD.
pub fn decode(bytes: &[u8]) -> String {
    let wide = |order: fn([u8; 2]) -> u16, bytes: &[u8]| {
        let units: Vec<u16> = bytes
            .chunks_exact(2)
            .map(|pair| order([pair[0], pair[1]]))
            .collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => wide(u16::from_be_bytes, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// One line of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its text, without line end.
    pub text: &'a str,
    /// Whether its end was captured; a capture that was cut off ends in a line whose numbers can't be trusted.
    pub terminated: bool,
}

/// The lines of `text`, without empty ones. LF, CRLF and CR end a line. Threads write without a lock, so a line of
/// the interval report (`[ 3s ] …`) that was printed into another line is split off it.
pub fn lines(text: &str) -> Vec<Line<'_>> {
    let mut found = Vec::new();
    for piece in text.split_inclusive(['\n', '\r']) {
        let terminated = piece.ends_with(['\n', '\r']);
        let mut rest = piece.trim_end_matches(['\n', '\r']);
        while let Some(start) = timestamp_after_start(rest) {
            found.push(Line {
                text: &rest[..start],
                terminated: true,
            });
            rest = &rest[start..];
        }
        found.push(Line {
            text: rest,
            terminated,
        });
    }
    found.retain(|line| !line.text.trim().is_empty());
    found
}

/// The second and the remainder of a line that starts with a timestamp: `[ 3s ] rest`, `[  10s] rest`.
pub fn timestamp(line: &str) -> Option<(u64, &str)> {
    let inner = line.trim_start().strip_prefix('[')?;
    let (stamp, rest) = inner.split_once(']')?;
    let second = stamp.trim().strip_suffix('s')?.trim_end();
    Some((super::decimal::count(second)?, rest.trim()))
}

fn timestamp_after_start(line: &str) -> Option<usize> {
    line.match_indices('[')
        .map(|(start, _)| start)
        .find(|&start| !line[..start].trim().is_empty() && timestamp(&line[start..]).is_some())
}

/// The whitespace-delimited word that follows `label`, without a trailing comma.
pub fn word_after<'a>(line: &'a str, label: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(label)?;
    Some(rest.split_whitespace().next()?.trim_end_matches([',', ';']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_what_two_threads_printed_into_one_line() {
        let texts: Vec<&str> = lines("    total time:  7.0036s[ 3s ] thds: 4\r\n\r\nlast")
            .iter()
            .map(|line| line.text)
            .collect();
        assert_eq!(texts, ["    total time:  7.0036s", "[ 3s ] thds: 4", "last"]);
        assert!(!lines("last")[0].terminated);
    }

    #[test]
    fn reads_every_encoding_that_a_shell_may_have_written() {
        let wide: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain("tps".encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        assert_eq!(decode(&wide), "tps");
        assert_eq!(decode(b"\xef\xbb\xbftps"), "tps");
        assert_eq!(decode(b"t\xffps"), "t\u{fffd}ps");
    }

    #[test]
    fn a_timestamp_needs_its_unit_and_brackets() {
        assert_eq!(timestamp("[  10s] threads: 16"), Some((10, "threads: 16")));
        assert_eq!(
            timestamp("[ 3s ] Checkpoint report:"),
            Some((3, "Checkpoint report:"))
        );
        assert_eq!(timestamp("[ 3 ] x"), None);
        assert_eq!(timestamp("[ 3s "), None);
    }
}
