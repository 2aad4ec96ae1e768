//! A watch that begins anew lists what is there; nothing tells of what went away meanwhile. So everything that may have
//! waited for that is looked at once more.

use futures::channel::mpsc::UnboundedSender;
use kube::runtime::watcher::Event;

/// For `inspect_ok` behind the store: tells when a whole new listing is in it.
pub(crate) fn tell<K>(listed: &UnboundedSender<()>) -> impl FnMut(&Event<K>) + Send + use<K> {
    let listed = listed.clone();
    move |event| {
        if matches!(event, Event::InitDone) {
            // The receiver lives as long as the controller.
            let _ = listed.unbounded_send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::channel::mpsc;

    #[test]
    fn only_the_end_of_a_listing_is_told() {
        let (listed, mut told) = mpsc::unbounded();
        let mut inspect = tell(&listed);
        for event in [
            Event::Init,
            Event::InitApply(1),
            Event::Apply(2),
            Event::Delete(3),
        ] {
            inspect(&event);
        }
        assert!(told.try_recv().is_err());
        inspect(&Event::InitDone);
        assert!(told.try_recv().is_ok());
    }
}
