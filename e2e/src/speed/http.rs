//! The least HTTP/1.1 that fills an API server quickly: one connection kept open, one request after another, through
//! `kubectl proxy` on the loopback address, which holds the certificates. Not for anything else.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::cluster::Cluster;
use crate::error::{Error, Result, at};

/// A running `kubectl proxy`; it ends with this value.
#[derive(Debug)]
pub struct Proxy {
    child: Child,
    address: String,
}

impl Proxy {
    /// Starts it on a free port.
    pub fn start(cluster: &Cluster) -> Result<Self> {
        let mut kubectl = cluster.kubectl();
        kubectl.args(["proxy", "--port=0", "--address=127.0.0.1"]);
        kubectl
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = kubectl.spawn().map_err(at("kubectl proxy"))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output)
                .read_line(&mut line)
                .map_err(at("kubectl proxy"))?;
        }
        let address = line.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        let proxy = Self { child, address };
        if proxy.address.contains(':') {
            Ok(proxy)
        } else {
            Err(Error::Plain(format!("kubectl proxy did not start: `{line}`")))
        }
    }

    /// A connection to it.
    pub fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(&self.address).map_err(at(&self.address))?;
        // A request is one small write: waiting for more of it would cost 40 ms each.
        stream.set_nodelay(true).map_err(at(&self.address))?;
        Ok(Connection {
            reader: BufReader::new(stream),
        })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that is kept open.
#[derive(Debug)]
pub struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    /// Sends a request and returns the answer's status code and body.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &str,
    ) -> Result<(u16, String)> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.reader
            .get_mut()
            .write_all(request.as_bytes())
            .map_err(at("the API server's proxy"))?;
        answer(&mut self.reader)
            .map_err(at("the API server's proxy"))?
            .ok_or_else(|| Error::Plain(format!("{method} {path}: the answer is not HTTP")))
    }
}

/// Reads one answer; `None` if it is not one.
fn answer(reader: &mut impl BufRead) -> std::io::Result<Option<(u16, String)>> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let Some(code) = line.split(' ').nth(1).and_then(|code| code.parse().ok()) else {
        return Ok(None);
    };
    let (mut length, mut chunked) = (0, false);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let header = line.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        chunked |= header == "transfer-encoding: chunked";
    }
    let mut body = Vec::new();
    if !chunked {
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
    }
    while chunked {
        line.clear();
        reader.read_line(&mut line)?;
        let Ok(size) = usize::from_str_radix(line.trim(), 16) else {
            return Ok(None);
        };
        let start = body.len();
        body.resize(start + size, 0);
        reader.read_exact(&mut body[start..])?;
        line.clear();
        reader.read_line(&mut line)?;
        chunked = size > 0;
    }
    Ok(Some((code, String::from_utf8_lossy(&body).into_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_follow_each_other_on_one_connection() {
        let mut wire: &[u8] = b"HTTP/1.1 201 Created\r\nContent-Length: 4\r\nDate: x\r\n\r\nabcd\
            HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n\
            HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(answer(&mut wire).unwrap(), Some((201, "abcd".into())));
        assert_eq!(answer(&mut wire).unwrap(), Some((200, "abcde".into())));
        assert_eq!(answer(&mut wire).unwrap(), Some((409, String::new())));
        assert_eq!(
            answer(&mut wire).unwrap(),
            None,
            "a closed connection is no answer"
        );
    }
}
