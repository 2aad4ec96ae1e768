//! Packets of the MySQL client/server protocol, both ways. Layouts: MySQL Internals, "Client/Server Protocol".

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::fault::Fault;
use crate::server::Rows;
use crate::value::Value;

/// The client and the server know protocol 4.1 (`CLIENT_PROTOCOL_41`).
const PROTOCOL_41: u32 = 1 << 9;
const CONNECT_WITH_SCHEMA: u32 = 1 << 3;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const PLUGIN_AUTH: u32 = 1 << 19;
const LONG_AUTH_DATA: u32 = 1 << 21;
const DEPRECATE_EOF: u32 = 1 << 24;
/// `utf8mb4_general_ci`, `binary`.
const UTF8: u16 = 45;
const BINARY: u16 = 63;
/// `SERVER_STATUS_AUTOCOMMIT`.
const AUTOCOMMIT: u16 = 2;
/// Largest payload of one packet; longer ones are not taken.
const LARGEST: usize = 0xff_ffff;

const LONGLONG: u8 = 8;
const DOUBLE: u8 = 5;
const VAR_STRING: u8 = 253;

/// A connection as packets.
pub(crate) struct Wire {
    stream: TcpStream,
    sequence: u8,
    without_eof: bool,
    out: Vec<u8>,
}

/// How the answer to a login goes.
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) answer: Vec<u8>,
    pub(crate) schema: Option<String>,
    pub(crate) plugin: String,
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed packet")
}

/// What is left of a packet.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, bytes: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> io::Result<u64> {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(self.take(bytes)?);
        Ok(u64::from_le_bytes(number))
    }

    fn zero_ended(&mut self) -> io::Result<String> {
        let end = self.0.iter().position(|b| *b == 0).ok_or_else(malformed)?;
        let text = String::from_utf8_lossy(self.take(end)?).into_owned();
        self.take(1)?;
        Ok(text)
    }

    fn length(&mut self) -> io::Result<usize> {
        let length = match self.number(1)? {
            0xfc => self.number(2)?,
            0xfd => self.number(3)?,
            0xfe => self.number(8)?,
            short => short,
        };
        usize::try_from(length).map_err(|_| malformed())
    }
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    let bytes = (length as u64).to_le_bytes();
    match length {
        0..=250 => out.push(bytes[0]),
        251..=0xffff => {
            out.push(0xfc);
            out.extend(&bytes[..2]);
        }
        0x1_0000..=LARGEST => {
            out.push(0xfd);
            out.extend(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend(bytes);
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_length(out, text.len());
    out.extend(text.as_bytes());
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            sequence: 0,
            without_eof: false,
            out: Vec::new(),
        }
    }

    /// The next packet; `None` where the client has gone.
    pub(crate) async fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut head = [0; 4];
        if let Err(error) = self.stream.read_exact(&mut head).await {
            return match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Ok(None),
                _ => Err(error),
            };
        }
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
        if length >= LARGEST {
            return Err(malformed());
        }
        self.sequence = head[3].wrapping_add(1);
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await?;
        Ok(Some(payload))
    }

    fn put(&mut self, payload: &[u8]) {
        self.out.extend(&(payload.len() as u32).to_le_bytes()[..3]);
        self.out.push(self.sequence);
        self.sequence = self.sequence.wrapping_add(1);
        self.out.extend(payload);
    }

    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        let out = std::mem::take(&mut self.out);
        self.stream.write_all(&out).await
    }

    /// Greets (`Protocol::HandshakeV10`); `new`: the server knows `CLIENT_DEPRECATE_EOF`.
    pub(crate) async fn greet(
        &mut self,
        version: &str,
        id: u32,
        scramble: &[u8; 20],
        plugin: &str,
        new: bool,
    ) -> io::Result<()> {
        let mut capabilities = PROTOCOL_41
            | CONNECT_WITH_SCHEMA
            | TRANSACTIONS
            | SECURE_CONNECTION
            | PLUGIN_AUTH
            | LONG_AUTH_DATA;
        if new {
            capabilities |= DEPRECATE_EOF;
        }
        let capabilities = capabilities.to_le_bytes();
        let mut packet = vec![10];
        packet.extend(version.as_bytes());
        packet.push(0);
        packet.extend(id.to_le_bytes());
        packet.extend(&scramble[..8]);
        packet.push(0);
        packet.extend(&capabilities[..2]);
        packet.push(UTF8 as u8);
        packet.extend(AUTOCOMMIT.to_le_bytes());
        packet.extend(&capabilities[2..]);
        packet.push(21);
        packet.extend([0; 10]);
        packet.extend(&scramble[8..]);
        packet.push(0);
        packet.extend(plugin.as_bytes());
        packet.push(0);
        self.sequence = 0;
        self.put(&packet);
        self.flush().await
    }

    /// Reads the client's answer (`Protocol::HandshakeResponse41`).
    pub(crate) fn login(&mut self, packet: &[u8]) -> io::Result<Login> {
        let mut reader = Reader(packet);
        let capabilities = reader.number(4)? as u32;
        if capabilities & PROTOCOL_41 == 0 {
            return Err(malformed());
        }
        self.without_eof = capabilities & DEPRECATE_EOF != 0;
        reader.take(4 + 1 + 23)?;
        let user = reader.zero_ended()?;
        let length = if capabilities & LONG_AUTH_DATA == 0 {
            reader.number(1)? as usize
        } else {
            reader.length()?
        };
        let answer = reader.take(length)?.to_vec();
        let schema = if capabilities & CONNECT_WITH_SCHEMA == 0 {
            None
        } else {
            Some(reader.zero_ended()?).filter(|schema| !schema.is_empty())
        };
        let plugin = if capabilities & PLUGIN_AUTH == 0 {
            String::new()
        } else {
            reader.zero_ended()?
        };
        Ok(Login {
            user,
            answer,
            schema,
            plugin,
        })
    }

    /// Asks for another proof (`Protocol::AuthSwitchRequest`).
    pub(crate) fn switch(&mut self, plugin: &str, scramble: &[u8; 20]) {
        let mut packet = vec![0xfe];
        packet.extend(plugin.as_bytes());
        packet.push(0);
        packet.extend(scramble);
        packet.push(0);
        self.put(&packet);
    }

    /// `caching_sha2_password`: the answer was in the cache (`fast_auth_success`).
    pub(crate) fn fast(&mut self) {
        self.put(&[1, 3]);
    }

    /// Done.
    pub(crate) fn ok(&mut self, changed: u64, warnings: usize) {
        self.ok_as(0, changed, warnings);
    }

    fn ok_as(&mut self, head: u8, changed: u64, warnings: usize) {
        let mut packet = vec![head];
        put_length(&mut packet, usize::try_from(changed).unwrap_or(usize::MAX));
        put_length(&mut packet, 0);
        packet.extend(AUTOCOMMIT.to_le_bytes());
        packet.extend((warnings as u16).to_le_bytes());
        self.put(&packet);
    }

    fn end_of_rows(&mut self, warnings: usize) {
        if self.without_eof {
            self.ok_as(0xfe, 0, warnings);
        } else {
            self.end_of_columns(warnings);
        }
    }

    fn end_of_columns(&mut self, warnings: usize) {
        let warnings = (warnings as u16).to_le_bytes();
        self.put(&[0xfe, warnings[0], warnings[1], AUTOCOMMIT as u8, 0]);
    }

    /// An error.
    pub(crate) fn fault(&mut self, fault: &Fault) {
        let mut packet = vec![0xff];
        packet.extend(fault.code.to_le_bytes());
        packet.push(b'#');
        packet.extend(fault.state.as_bytes());
        packet.extend(fault.message.as_bytes());
        self.put(&packet);
    }

    fn column(&mut self, name: &str, kind: u8) {
        let mut packet = Vec::new();
        for text in ["def", "", "", "", name, name] {
            put_text(&mut packet, text);
        }
        packet.push(12);
        packet.extend(if kind == VAR_STRING { UTF8 } else { BINARY }.to_le_bytes());
        packet.extend(1_048_576_u32.to_le_bytes());
        packet.push(kind);
        packet.extend([0; 5]);
        self.put(&packet);
    }

    /// Rows in the text protocol, or the binary one of prepared statements.
    pub(crate) fn rows(&mut self, rows: &Rows, binary: bool, warnings: usize) {
        let mut head = Vec::new();
        put_length(&mut head, rows.columns.len());
        self.put(&head);
        let kinds: Vec<u8> = (0..rows.columns.len())
            .map(|at| kind(rows.rows.iter().map(|row| &row[at])))
            .collect();
        for (name, kind) in rows.columns.iter().zip(&kinds) {
            self.column(name, *kind);
        }
        if !self.without_eof {
            self.end_of_columns(0);
        }
        for row in &rows.rows {
            let packet = if binary {
                binary_row(row, &kinds)
            } else {
                text_row(row)
            };
            self.put(&packet);
        }
        self.end_of_rows(warnings);
    }

    /// A statement was prepared (`COM_STMT_PREPARE_OK`).
    pub(crate) fn prepared(&mut self, id: u32, columns: &[String], placeholders: usize) {
        let mut packet = vec![0];
        packet.extend(id.to_le_bytes());
        packet.extend((columns.len() as u16).to_le_bytes());
        packet.extend((placeholders as u16).to_le_bytes());
        packet.extend([0, 0, 0]);
        self.put(&packet);
        if placeholders > 0 {
            for _ in 0..placeholders {
                self.column("?", VAR_STRING);
            }
            if !self.without_eof {
                self.end_of_columns(0);
            }
        }
        if !columns.is_empty() {
            for name in columns {
                self.column(name, VAR_STRING);
            }
            if !self.without_eof {
                self.end_of_columns(0);
            }
        }
    }
}

/// One type for all values of a column.
fn kind<'a>(values: impl Iterator<Item = &'a Value>) -> u8 {
    let mut kind = None;
    for value in values {
        let one = match value {
            Value::Null => continue,
            Value::Integer(number) if i64::try_from(*number).is_ok() => LONGLONG,
            Value::Real(_) => DOUBLE,
            Value::Integer(_) | Value::Text(_) => VAR_STRING,
        };
        kind = Some(if kind.is_none_or(|k| k == one) {
            one
        } else {
            VAR_STRING
        });
    }
    kind.unwrap_or(VAR_STRING)
}

fn text_row(row: &[Value]) -> Vec<u8> {
    let mut packet = Vec::new();
    for value in row {
        match value.shown() {
            None => packet.push(0xfb),
            Some(text) => put_text(&mut packet, &text),
        }
    }
    packet
}

fn binary_row(row: &[Value], kinds: &[u8]) -> Vec<u8> {
    let mut nulls = vec![0_u8; (row.len() + 9) / 8];
    let mut body = Vec::new();
    for (at, (value, kind)) in row.iter().zip(kinds).enumerate() {
        match (value, *kind) {
            (Value::Null, _) => nulls[(at + 2) / 8] |= 1 << ((at + 2) % 8),
            (Value::Integer(number), LONGLONG) => {
                body.extend(i64::try_from(*number).unwrap_or_default().to_le_bytes());
            }
            (Value::Real(number), DOUBLE) => body.extend(number.to_le_bytes()),
            (value, _) => put_text(&mut body, &value.shown().unwrap_or_default()),
        }
    }
    let mut packet = vec![0];
    packet.extend(nulls);
    packet.extend(body);
    packet
}

/// Values of placeholders (`COM_STMT_EXECUTE` after the statement's number, flags and iterations); `types` are those of the
/// execution before, which a client need not repeat.
pub(crate) fn bound(
    packet: &[u8],
    placeholders: usize,
    types: &mut Vec<(u8, bool)>,
) -> io::Result<Vec<Value>> {
    if placeholders == 0 {
        return Ok(Vec::new());
    }
    let mut reader = Reader(packet);
    let nulls = reader.take(placeholders.div_ceil(8))?.to_vec();
    if reader.number(1)? == 1 {
        types.clear();
        for _ in 0..placeholders {
            let kind = reader.number(2)?;
            types.push((kind as u8, kind & 0x8000 != 0));
        }
    }
    if types.len() != placeholders {
        return Err(malformed());
    }
    let mut values = Vec::with_capacity(placeholders);
    for (at, (kind, unsigned)) in types.iter().enumerate() {
        if nulls[at / 8] & (1 << (at % 8)) != 0 {
            values.push(Value::Null);
            continue;
        }
        let bytes = match kind {
            1 => 1,
            2 | 13 => 2,
            3 | 9 => 4,
            8 => 8,
            _ => 0,
        };
        values.push(match kind {
            // MYSQL_TYPE_NULL
            6 => Value::Null,
            4 => Value::Real(f64::from(f32::from_bits(reader.number(4)? as u32))),
            5 => Value::Real(f64::from_bits(reader.number(8)?)),
            _ if bytes > 0 => {
                let number = reader.number(bytes)?;
                let shift = 64 - 8 * bytes as u32;
                Value::Integer(if *unsigned {
                    i128::from(number)
                } else {
                    i128::from(((number << shift) as i64) >> shift)
                })
            }
            _ => {
                let length = reader.length()?;
                Value::Text(String::from_utf8_lossy(reader.take(length)?).into_owned())
            }
        });
    }
    Ok(values)
}
