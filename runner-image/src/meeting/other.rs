//! A pod of another index: it comes to the first one, begins when it is told to, and says when it has ended.

use std::future::Future;
use std::io;
use std::time::Duration;

use crds::together::Meeting;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{ENDED, FAILED, GO, MEETING_LIMIT, PING, PINGS, PONG, READY, hear, hello, prepared, say};

/// Pause before the first one is looked for again: its pod, or its name, is not there yet.
const COME_AGAIN: Duration = Duration::from_millis(250);
/// How long one attempt to connect may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// The meeting as another pod has it.
#[derive(Debug)]
pub struct Other {
    hear: BufReader<OwnedReadHalf>,
    say: OwnedWriteHalf,
    uncertainty: Duration,
}

impl Other {
    /// Goes to the first one, as often as it takes, and measures how far away it is.
    ///
    /// # Errors
    /// If it can't be found in time, or did not answer; in words.
    pub async fn come(meeting: &Meeting, run_uid: &str, epoch: i64, index: i32) -> Result<Self, String> {
        let begun = Instant::now();
        let stream = loop {
            let attempt = TcpStream::connect((meeting.host.as_str(), meeting.port));
            let problem = match tokio::time::timeout(CONNECT_LIMIT, attempt).await {
                Ok(Ok(stream)) => break stream,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            if begun.elapsed() > MEETING_LIMIT {
                let (host, port) = (&meeting.host, meeting.port);
                return Err(format!(
                    "the first load generator was not found at {host}:{port} within {} s: {problem}",
                    MEETING_LIMIT.as_secs()
                ));
            }
            tokio::time::sleep(COME_AGAIN).await;
        };
        let met = Self::meet(stream, &hello(run_uid, epoch, index)).await;
        met.map_err(|error| format!("the first load generator does not answer: {error}"))
    }

    async fn meet(stream: TcpStream, hello: &str) -> io::Result<Self> {
        prepared(&stream)?;
        let (read, write) = stream.into_split();
        let mut met = Self {
            hear: BufReader::new(read),
            say: write,
            uncertainty: Duration::MAX,
        };
        say(&mut met.say, hello).await?;
        for _ in 0..PINGS {
            let sent = Instant::now();
            say(&mut met.say, PING).await?;
            met.expect(PONG).await?;
            met.uncertainty = met.uncertainty.min(sent.elapsed() / 2);
        }
        Ok(met)
    }

    async fn expect(&mut self, word: &str) -> io::Result<()> {
        let heard = hear(&mut self.hear).await?;
        if heard == word {
            Ok(())
        } else {
            Err(io::Error::other(format!("it said {heard:?}")))
        }
    }

    /// By how much this start may be later than the first one's.
    pub fn uncertainty(&self) -> Duration {
        self.uncertainty
    }

    /// Says that it is ready and waits until all are.
    ///
    /// # Errors
    /// If the first one goes away; in words.
    pub async fn started(mut self) -> Result<Started, String> {
        let begun = async {
            say(&mut self.say, READY).await?;
            self.expect(GO).await
        };
        // The first one ends the meeting when somebody does not come.
        match tokio::time::timeout(MEETING_LIMIT * 2, begun).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(format!("the first load generator called it off: {error}")),
            Err(_) => return Err("the first load generator never said to begin".to_owned()),
        }
        let (tell, gone) = watch::channel(false);
        let mut first = self.hear;
        let watching = tokio::spawn(async move {
            // It says nothing more: whatever comes is its end.
            let _ = hear(&mut first).await;
            let _ = tell.send(true);
        });
        Ok(Started {
            say: self.say,
            gone,
            watching,
        })
    }
}

/// A load that has begun.
#[derive(Debug)]
pub struct Started {
    say: OwnedWriteHalf,
    gone: watch::Receiver<bool>,
    watching: JoinHandle<()>,
}

impl Drop for Started {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Started {
    /// Ends when the first one has gone.
    pub fn broken(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut gone = self.gone.clone();
        async move {
            if gone.wait_for(|gone| *gone).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Whether the first one has gone.
    pub fn is_broken(&self) -> bool {
        *self.gone.borrow()
    }

    /// Says that the load has ended, well or not.
    ///
    /// # Errors
    /// If the first one has gone.
    pub async fn ended(mut self, well: bool) -> io::Result<()> {
        say(&mut self.say, if well { ENDED } else { FAILED }).await
    }
}
