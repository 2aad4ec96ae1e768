//! The pod of index 0: it waits for the others, says when to begin, and hears when each has ended.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crds::together::Meeting;
use tokio::io::BufStream;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{END_LIMIT, ENDED, FAILED, GO, MEETING_LIMIT, PING, PONG, READY, hear, hello, prepared, say};

/// How long a connection may take to say who it is.
const HELLO_LIMIT: Duration = Duration::from_secs(10);

/// How far the others have come.
#[derive(Debug, Default)]
struct State {
    ready: BTreeSet<i32>,
    ended: BTreeSet<i32>,
    /// Who was lost, in words.
    lost: Option<String>,
}

/// The meeting as the first pod has it. Dropped, it ends for the others too.
#[derive(Debug)]
pub struct First {
    others: usize,
    port: u16,
    state: watch::Receiver<State>,
    go: watch::Sender<bool>,
    listening: JoinHandle<()>,
}

impl Drop for First {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl First {
    /// Begins to wait for the others.
    ///
    /// # Errors
    /// If the port is taken.
    pub async fn open(meeting: &Meeting, run_uid: &str, epoch: i64) -> io::Result<Self> {
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, meeting.port));
        let listener = match TcpListener::bind(any).await {
            Ok(listener) => listener,
            // A node without version 6.
            Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, meeting.port)).await?,
        };
        let port = listener.local_addr()?.port();
        let (tell, state) = watch::channel(State::default());
        let (go, begin) = watch::channel(false);
        let expected = (1..meeting.count)
            .map(|index| hello(run_uid, epoch, index))
            .collect();
        let listening = tokio::spawn(listen(listener, expected, tell, begin));
        Ok(Self {
            others: usize::try_from(meeting.count - 1).unwrap_or(0),
            port,
            state,
            go,
            listening,
        })
    }

    /// The port on which it waits.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends when all others are ready.
    ///
    /// # Errors
    /// If one was lost, or they did not come in time; in words.
    pub async fn gathered(&self) -> Result<(), String> {
        let others = self.others;
        self.until(
            MEETING_LIMIT,
            move |state| state.ready.len() == others,
            |state| {
                format!(
                    "{} of {others} other load generators came to the start within {} s",
                    state.ready.len(),
                    MEETING_LIMIT.as_secs()
                )
            },
        )
        .await
    }

    /// Tells all to begin.
    pub fn go(&self) {
        // Those who wait hold receivers as long as they are connected.
        let _ = self.go.send(true);
    }

    /// Ends when one of the others is lost, and never if none is.
    pub fn broken(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut state = self.state.clone();
        async move {
            if state.wait_for(|state| state.lost.is_some()).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Who was lost, in words.
    pub fn lost(&self) -> Option<String> {
        self.state.borrow().lost.clone()
    }

    /// Ends when all others have ended their load.
    ///
    /// # Errors
    /// If one was lost, or went on for too long; in words.
    pub async fn ended(&self) -> Result<(), String> {
        let others = self.others;
        self.until(
            END_LIMIT,
            move |state| state.ended.len() == others,
            |state| {
                format!(
                    "{} of {others} other load generators ended within {} s of the first one's end",
                    state.ended.len(),
                    END_LIMIT.as_secs()
                )
            },
        )
        .await
    }

    async fn until(
        &self,
        limit: Duration,
        reached: impl Fn(&State) -> bool,
        late: impl Fn(&State) -> String,
    ) -> Result<(), String> {
        let mut state = self.state.clone();
        let wait = state.wait_for(|state| state.lost.is_some() || reached(state));
        let Ok(answer) = tokio::time::timeout(limit, wait).await else {
            return Err(late(&self.state.borrow()));
        };
        match answer {
            Ok(state) => state.lost.clone().map_or(Ok(()), Err),
            Err(_) => Err("nobody listens for the other load generators any more".to_owned()),
        }
    }
}

/// Takes connections in; each ends with this.
async fn listen(
    listener: TcpListener,
    expected: Vec<String>,
    state: watch::Sender<State>,
    go: watch::Receiver<bool>,
) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // Out of descriptors or the like: it may pass.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                connections.spawn(attend(stream, expected.clone(), state.clone(), go.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One connection to its end.
async fn attend(
    stream: TcpStream,
    expected: Vec<String>,
    state: watch::Sender<State>,
    go: watch::Receiver<bool>,
) {
    if let Err(error) = prepared(&stream) {
        tracing::warn!(%error, "a connection was lost as it came");
        return;
    }
    let mut stream = BufStream::new(stream);
    let heard = tokio::time::timeout(HELLO_LIMIT, hear(&mut stream)).await;
    let place = match heard {
        Ok(Ok(line)) => expected.iter().position(|expected| *expected == line),
        _ => None,
    };
    let Some(index) = place.and_then(|place| i32::try_from(place + 1).ok()) else {
        tracing::warn!("somebody connected who is not of this load");
        return;
    };
    if let Err(error) = converse(&mut stream, index, &state, go).await {
        state.send_modify(|state| {
            state
                .lost
                .get_or_insert_with(|| format!("load generator {index} was lost: {error}"));
        });
    }
}

async fn converse(
    stream: &mut BufStream<TcpStream>,
    index: i32,
    state: &watch::Sender<State>,
    mut go: watch::Receiver<bool>,
) -> io::Result<()> {
    use tokio::io::AsyncWriteExt as _;
    loop {
        match hear(stream).await?.as_str() {
            PING => {
                say(stream, PONG).await?;
                stream.flush().await?;
            }
            READY => break,
            word => return Err(io::Error::other(format!("it said {word:?}"))),
        }
    }
    if state.borrow().ready.contains(&index) {
        return Err(io::Error::other("it came twice"));
    }
    state.send_modify(|state| {
        state.ready.insert(index);
    });
    tokio::select! {
        // One that says anything or goes before it was told to begin is lost.
        early = hear(stream) => {
            let word = early?;
            return Err(io::Error::other(format!("it said {word:?} before the start")));
        }
        told = go.wait_for(|go| *go) => drop(told.map_err(io::Error::other)?),
    }
    say(stream, GO).await?;
    stream.flush().await?;
    match hear(stream).await?.as_str() {
        ENDED => {
            state.send_modify(|state| {
                state.ended.insert(index);
            });
            Ok(())
        }
        FAILED => Err(io::Error::other("its load failed")),
        word => Err(io::Error::other(format!("it said {word:?}"))),
    }
}
