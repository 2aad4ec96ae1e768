//! Words, literals and signs.

use crate::fault::Fault;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A word as written.
    Word(String),
    /// A name in backquotes.
    Quoted(String),
    /// A string literal.
    Text(String),
    /// A number.
    Number(String),
    /// Anything else.
    Sign(&'static str),
}

const SIGNS: &[&str] = &[
    "@@", "<=", ">=", "<>", "!=", ":=", "@", "(", ")", ",", ".", "=", "<", ">", "*", "+", "-", "?", ";",
];

/// Cuts a statement into tokens; comments are left out.
pub(super) fn tokens(sql: &str) -> Result<Vec<Token>, Fault> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return Ok(tokens);
        };
        if let Some(after) = rest.strip_prefix("/*") {
            let end = after.find("*/").ok_or_else(|| Fault::syntax(rest))?;
            rest = &after[end + 2..];
        } else if first == '\'' || first == '"' || first == '`' {
            let (text, after) = quoted(rest, first).ok_or_else(|| Fault::syntax(rest))?;
            rest = after;
            tokens.push(if first == '`' {
                Token::Quoted(text)
            } else {
                Token::Text(text)
            });
        } else if first.is_ascii_digit() {
            let end = rest
                .find(|c: char| !(c.is_ascii_digit() || c == '.'))
                .unwrap_or(rest.len());
            tokens.push(Token::Number(rest[..end].to_owned()));
            rest = &rest[end..];
        } else if first.is_alphanumeric() || first == '_' || first == '$' {
            let end = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
                .unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        } else {
            let sign = SIGNS
                .iter()
                .find(|sign| rest.starts_with(**sign))
                .ok_or_else(|| Fault::syntax(rest))?;
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        }
    }
}

/// What stands in quotes, and what follows it.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inside = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character == quote {
            if characters.peek().is_some_and(|(_, next)| *next == quote) {
                characters.next();
                inside.push(quote);
            } else {
                return Some((inside, &text[at + quote.len_utf8()..]));
            }
        } else if character == '\\' && quote != '`' {
            inside.push(match characters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                '0' => '\0',
                other => other,
            });
        } else {
            inside.push(character);
        }
    }
    None
}
