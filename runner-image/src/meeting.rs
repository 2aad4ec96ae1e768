//! Where several load generators of one run meet: the one of index 0 waits for the others over TCP, says when to begin
//! and hears when each has ended. No clock of one is compared with a clock of another: each knows by how much its start
//! may differ (half of its fastest round trip) and how long its own load took.
//!
//! The words are lines: `hello RUN EPOCH INDEX`, `ping` and `pong`, `ready`, `go`, `ended`, `failed`. Run and epoch keep
//! the pods of another attempt out; they are no secret, and nothing that is one is sent.

mod first;
mod other;
#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub use first::First;
pub use other::Other;

/// How long one waits for the others: for nodes, images and names, within the Job's deadline.
pub const MEETING_LIMIT: Duration = Duration::from_mins(4);
/// How long the first one waits for the others' ends after its own.
const END_LIMIT: Duration = Duration::from_mins(1);
/// Round trips of which the fastest counts.
const PINGS: usize = 20;
/// Silence after which the system asks whether the other end is still there.
const KEEP_ALIVE: Duration = Duration::from_mins(1);
/// Longest line, bytes.
const LINE_BYTES: u64 = 256;

const HELLO: &str = "hello";
const PING: &str = "ping";
const PONG: &str = "pong";
const READY: &str = "ready";
const GO: &str = "go";
const ENDED: &str = "ended";
const FAILED: &str = "failed";

/// Words are short and must not wait for each other; while load is applied none is said, and the connection must neither
/// be forgotten on its way nor outlive a node.
fn prepared(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_ALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEP_ALIVE / 4)?;
    Ok(())
}

/// The first line of a pod.
fn hello(run_uid: &str, epoch: i64, index: i32) -> String {
    format!("{HELLO} {run_uid} {epoch} {index}")
}

async fn say(stream: &mut (impl AsyncWrite + Unpin), word: &str) -> io::Result<()> {
    stream.write_all(format!("{word}\n").as_bytes()).await
}

/// The next line; an error at the end, and for one that is too long.
async fn hear(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<String> {
    let mut line = String::new();
    stream.take(LINE_BYTES).read_line(&mut line).await?;
    match line.strip_suffix('\n') {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
