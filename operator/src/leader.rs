//! Leader election over one Lease: of several operators only the holder acts. The holder stops acting before its lease
//! can be taken by another, so that there are never two for long; fences in the databases cover the rest.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::PostParams;

use crate::context::{Context, Error, Result};

/// Name of the Lease in the operator's namespace.
pub const LEASE: &str = "benchmark-campaign-operator";
/// How long a lease lasts without renewal.
pub const DURATION: Duration = Duration::from_secs(15);
/// How often the holder renews it.
pub const RENEW_EVERY: Duration = Duration::from_secs(5);
/// When a holder that cannot renew gives up: before others may take over.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(10);
/// Limit of one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(4);

/// What to do about the lease, given what it holds.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    /// It is free, expired, or ours: write it.
    Take,
    /// Somebody else holds it.
    Wait,
}

/// Decides by the holder's identity and how long its renewal was seen unchanged. The clock of another machine is not
/// trusted: expiry is measured from when *we* first saw the renewal.
fn decide(spec: &LeaseSpec, identity: &str, unchanged_for: Duration) -> Decision {
    match spec.holder_identity.as_deref() {
        None | Some("") => Decision::Take,
        Some(holder) if holder == identity => Decision::Take,
        Some(_) => {
            let lasts = Duration::from_secs(
                spec.lease_duration_seconds
                    .and_then(|s| u64::try_from(s).ok())
                    .unwrap_or(DURATION.as_secs()),
            );
            if unchanged_for > lasts {
                Decision::Take
            } else {
                Decision::Wait
            }
        }
    }
}

/// A lease that was won; keep it with [`Leadership::hold`].
#[derive(Debug)]
pub struct Leadership {
    lease: Lease,
}

fn api(context: &Context) -> Api<Lease> {
    context.namespaced(&context.settings.operator_namespace)
}

fn claim(context: &Context, current: Option<&Lease>, now: Timestamp) -> Lease {
    let previous = current.and_then(|l| l.spec.as_ref());
    let ours = previous.is_some_and(|s| s.holder_identity.as_deref() == Some(&context.settings.identity));
    let transitions = previous.and_then(|s| s.lease_transitions).unwrap_or(0);
    Lease {
        metadata: current.map_or_else(
            || ObjectMeta {
                name: Some(LEASE.into()),
                ..ObjectMeta::default()
            },
            |l| l.metadata.clone(),
        ),
        spec: Some(LeaseSpec {
            holder_identity: Some(context.settings.identity.clone()),
            lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
            acquire_time: if ours {
                previous.and_then(|s| s.acquire_time.clone())
            } else {
                Some(MicroTime(now))
            },
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(if ours { transitions } else { transitions + 1 }),
            ..LeaseSpec::default()
        }),
    }
}

async fn write(context: &Context, lease: &Lease) -> Result<Lease> {
    let api = api(context);
    let parameters = PostParams::default();
    let call = async {
        if lease.metadata.resource_version.is_some() {
            api.replace(LEASE, &parameters, lease).await
        } else {
            api.create(&parameters, lease).await
        }
    };
    match tokio::time::timeout(CALL_TIMEOUT, call).await {
        Err(_) => Err(Error::TimedOut("writing the leader lease")),
        Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(Error::Conflict("the leader lease")),
        Ok(result) => result.map_err(|source| Error::Kube {
            doing: "writing the leader lease",
            source,
        }),
    }
}

/// Waits until this process leads.
pub async fn elect(context: &Context) -> Leadership {
    let mut seen: Option<(Option<MicroTime>, Option<String>, tokio::time::Instant)> = None;
    loop {
        let read = tokio::time::timeout(CALL_TIMEOUT, api(context).get_opt(LEASE)).await;
        let current = match read {
            Ok(Ok(lease)) => lease,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the leader lease cannot be read");
                tokio::time::sleep(RENEW_EVERY).await;
                continue;
            }
            Err(_) => {
                tracing::warn!("the leader lease cannot be read: no answer");
                continue;
            }
        };
        let take = match current.as_ref().and_then(|l| l.spec.as_ref()) {
            None => true,
            Some(spec) => {
                let mark = (spec.renew_time.clone(), spec.holder_identity.clone());
                if seen
                    .as_ref()
                    .is_none_or(|(time, holder, _)| (time, holder) != (&mark.0, &mark.1))
                {
                    seen = Some((mark.0, mark.1, tokio::time::Instant::now()));
                }
                let unchanged = seen.as_ref().map_or(Duration::ZERO, |(_, _, at)| at.elapsed());
                decide(spec, &context.settings.identity, unchanged) == Decision::Take
            }
        };
        if take {
            match write(context, &claim(context, current.as_ref(), context.clock.now())).await {
                Ok(lease) => {
                    tracing::info!(identity = %context.settings.identity, "leading");
                    context.metrics.leader.set(1);
                    return Leadership { lease };
                }
                Err(error) => tracing::debug!(%error, "another was faster"),
            }
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

impl Leadership {
    /// Renews the lease until it is lost, and returns then.
    pub async fn hold(mut self, context: &Context) {
        let mut renewed = tokio::time::Instant::now();
        loop {
            tokio::time::sleep(RENEW_EVERY).await;
            let mut failures = 0u32;
            loop {
                match write(context, &claim(context, Some(&self.lease), context.clock.now())).await {
                    Ok(lease) => {
                        self.lease = lease;
                        renewed = tokio::time::Instant::now();
                        break;
                    }
                    Err(error) => {
                        failures += 1;
                        tracing::warn!(%error, failures, "the leader lease was not renewed");
                        if matches!(error, Error::Conflict(_)) {
                            match api(context).get_opt(LEASE).await {
                                Ok(Some(lease)) => {
                                    let holder =
                                        lease.spec.as_ref().and_then(|s| s.holder_identity.as_deref());
                                    if holder != Some(&context.settings.identity) {
                                        context.metrics.leader.set(0);
                                        return;
                                    }
                                    self.lease = lease;
                                }
                                Ok(None) => self.lease.metadata.resource_version = None,
                                Err(_) => {}
                            }
                        }
                        if renewed.elapsed() > GIVE_UP_AFTER {
                            context.metrics.leader.set(0);
                            return;
                        }
                        tokio::time::sleep(Duration::from_millis(500)).await;
                    }
                }
            }
        }
    }
}

/// Gives the lease up at the end, so that a successor need not wait.
pub async fn release(context: &Context) {
    let read = tokio::time::timeout(CALL_TIMEOUT, api(context).get_opt(LEASE)).await;
    let Ok(Ok(Some(mut lease))) = read else { return };
    let Some(spec) = lease.spec.as_mut() else { return };
    if spec.holder_identity.as_deref() != Some(&context.settings.identity) {
        return;
    }
    spec.holder_identity = None;
    if let Err(error) = write(context, &lease).await {
        tracing::debug!(%error, "the leader lease was not given up; it expires by itself");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_by(holder: &str) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.into()),
            lease_duration_seconds: Some(15),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_lease_is_taken_only_when_free_ours_or_expired() {
        let fresh = Duration::from_secs(14);
        let expired = Duration::from_secs(16);
        assert_eq!(
            decide(&LeaseSpec::default(), "me", Duration::ZERO),
            Decision::Take
        );
        assert_eq!(decide(&held_by("me"), "me", Duration::ZERO), Decision::Take);
        assert_eq!(decide(&held_by("you"), "me", fresh), Decision::Wait);
        assert_eq!(decide(&held_by("you"), "me", expired), Decision::Take);
    }

    #[test]
    fn a_holder_gives_up_before_another_may_take_over() {
        assert!(GIVE_UP_AFTER + CALL_TIMEOUT < DURATION);
    }
}
