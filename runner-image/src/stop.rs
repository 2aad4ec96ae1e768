//! SIGTERM and SIGINT as something that can be waited for, as often as needed.

use std::future::Future;
use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Whether we were told to stop.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens for SIGTERM and SIGINT from now on. As process 1 of a container we would otherwise ignore them.
    ///
    /// # Errors
    /// If the handlers can't be installed.
    pub fn on_signals() -> io::Result<Self> {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self::on(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }))
    }

    /// Stops when `end` ends.
    pub fn on(end: impl Future<Output = ()> + Send + 'static) -> Self {
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            end.await;
            // Nobody may be waiting any more.
            let _ = sender.send(true);
            sender.closed().await;
        });
        Self(receiver)
    }

    /// Stops when this one does, or when `end` ends.
    #[must_use]
    pub fn or(&self, end: impl Future<Output = ()> + Send + 'static) -> Self {
        let own = self.clone();
        Self::on(async move {
            tokio::select! {
                () = own.requested() => {}
                () = end => {}
            }
        })
    }

    /// Whether we were told to stop.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Ends when we are told to stop, or at once if we were.
    pub async fn requested(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|stopped| *stopped).await.is_err() {
            // The sender is gone with its task: the runtime is shutting down.
            std::future::pending::<()>().await;
        }
    }
}
