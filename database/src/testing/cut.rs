//! A line between a client and a server that is cut after so many messages of the client: whoever is killed in the middle
//! of something has sent just these.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The line; it ends when dropped.
pub struct CutLine {
    port: u16,
    sent: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl CutLine {
    /// A line to a port of this machine that carries `messages` messages of its clients, over all connections.
    pub async fn to(port: u16, messages: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("an address").port();
        let sent = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&sent);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, port, messages, Arc::clone(&counted)));
            }
        });
        Self {
            port: own,
            sent,
            task,
        }
    }

    /// Port of its client's end.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether it was cut.
    pub fn is_cut(&self, messages: usize) -> bool {
        self.sent.load(Ordering::SeqCst) > messages
    }
}

impl Drop for CutLine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(mut client: TcpStream, port: u16, messages: usize, sent: Arc<AtomicUsize>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else {
        return;
    };
    let (mut up, mut down) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => match read {
                Ok(length) if length > 0 && sent.fetch_add(1, Ordering::SeqCst) < messages => {
                    if server.write_all(&up[..length]).await.is_err() { return }
                }
                _ => return,
            },
            read = server.read(&mut down) => match read {
                Ok(length) if length > 0 => {
                    if client.write_all(&down[..length]).await.is_err() { return }
                }
                _ => return,
            },
        }
    }
}
