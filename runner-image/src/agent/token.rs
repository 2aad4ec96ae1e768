//! The agent's bearer token: read from a file, compared in constant time, never printed.

use std::fmt;
use std::fs;
use std::path::Path;

/// A secret that a request must carry.
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

impl Token {
    /// A token; `None` if it is empty or has characters that a header can't carry.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(text.as_bytes().to_vec()))
    }

    /// The token in a file.
    ///
    /// # Errors
    /// If the file can't be read or holds no token; the message never holds the token.
    pub fn from_file(file: &Path) -> Result<Self, String> {
        let text =
            fs::read_to_string(file).map_err(|error| format!("token file {}: {error}", file.display()))?;
        Self::new(&text)
            .ok_or_else(|| format!("token file {}: empty, or not printable ASCII", file.display()))
    }

    /// Whether an `Authorization` header carries this token. The time taken depends on the header's length only.
    pub fn permits(&self, header: Option<&[u8]>) -> bool {
        let Some(given) = header.and_then(|header| header.strip_prefix(b"Bearer ")) else {
            return false;
        };
        let mut difference = u8::from(given.len() != self.0.len());
        for (index, byte) in given.iter().enumerate() {
            // Every byte is compared, with a byte of the token or, behind its end, with its own inverse.
            difference |= byte ^ self.0.get(index).copied().unwrap_or(!byte);
        }
        std::hint::black_box(difference) == 0
    }

    /// The value of an `Authorization` header that carries it.
    pub fn header(&self) -> String {
        format!("Bearer {}", String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(Some("Bearer abc"), true)]
    #[case(Some("Bearer abd"), false)]
    #[case(Some("Bearer ab"), false)]
    #[case(Some("Bearer abcd"), false)]
    #[case(Some("Bearer "), false)]
    #[case(Some("Basic abc"), false)]
    #[case(None, false)]
    fn permits_only_the_token(#[case] header: Option<&str>, #[case] expected: bool) {
        let token = Token::new(" abc\n").unwrap();
        assert_eq!(token.permits(header.map(str::as_bytes)), expected);
    }

    #[test]
    fn never_shows_itself_and_is_never_empty() {
        assert_eq!(format!("{:?}", Token::new("abc").unwrap()), "Token(…)");
        assert!(Token::new(" \n").is_none() && Token::new("a b").is_none());
    }
}
