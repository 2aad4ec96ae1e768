//! Names that appear in more than one crate, in manifests, or in a database: spelled once, here.

/// API group of all four kinds.
pub const GROUP: &str = "benchmark-campaign.dev";
/// API version of all four kinds.
pub const VERSION: &str = "v1alpha1";

/// Label of a Secret that a target may refer to; its value must be `"true"`.
pub const LABEL_CREDENTIALS: &str = "benchmark-campaign.dev/credentials";
/// Label on everything that a campaign causes: the campaign's name.
pub const LABEL_CAMPAIGN: &str = "benchmark-campaign.dev/campaign";
/// Label on everything that a target causes: the target's name.
pub const LABEL_TARGET: &str = "benchmark-campaign.dev/target";
/// Label on everything that a run causes: the run's name.
pub const LABEL_RUN: &str = "benchmark-campaign.dev/run";
/// Label on pods: what the pod is for (`database`, `run`, `prepare`).
pub const LABEL_ROLE: &str = "benchmark-campaign.dev/role";
/// Annotation on a campaign: a token; a token not seen before runs the campaign again.
pub const ANNOTATION_RUN_REQUEST: &str = "benchmark-campaign.dev/run-request";
/// Annotation on a campaign: the tables that its results are printed as, one a line
/// (`rows=Threads columns=AuditSetting metrics=Tps,Qps difference-from=no-audit`).
pub const ANNOTATION_TABLES: &str = "benchmark-campaign.dev/tables";
/// Annotation on a database pod: which boot request it answers.
pub const ANNOTATION_BOOT_SERIAL: &str = "benchmark-campaign.dev/boot-serial";
/// Annotation on a database pod and part of its configuration's name: hash of the configuration.
pub const ANNOTATION_CONFIGURATION_HASH: &str = "benchmark-campaign.dev/configuration-hash";
/// Finalizer on external targets, present exactly while `status.originalState` is set.
pub const FINALIZER_RESTORE: &str = "benchmark-campaign.dev/restore-original-state";
/// Field manager of the operator's writes.
pub const FIELD_MANAGER: &str = "benchmark-campaign-operator";

/// Container of a managed database pod that runs the server.
pub const CONTAINER_DATABASE: &str = "database";
/// Container of a managed database pod that reads what SQL cannot.
pub const CONTAINER_AGENT: &str = "agent";
/// Container of a run's or prepare's pod.
pub const CONTAINER_RUNNER: &str = "runner";

/// Port of the agent in a managed database pod.
pub const AGENT_PORT: u16 = 9180;
/// Port on which the first of several load generators waits for the others.
pub const MEETING_PORT: u16 = 9181;
/// Label that the Job controller puts on the pods of an indexed Job.
pub const LABEL_JOB_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Keys of a managed target's generated Secret, and of a borrowed target's own.
pub mod secret {
    /// Login name.
    pub const USERNAME: &str = "username";
    /// Password.
    pub const PASSWORD: &str = "password";
    /// PEM certificate authority for TLS (optional, borrowed targets).
    pub const CA: &str = "ca.crt";
    /// Bearer token of the agent (managed targets).
    pub const AGENT_TOKEN: &str = "agent-token";
    /// SQL that the server runs at every boot before it accepts connections (managed targets).
    pub const INIT_SQL: &str = "init.sql";
}

/// Condition types.
pub mod condition {
    /// The object can be used, or its work is admitted (a queued or running campaign is ready).
    pub const READY: &str = "Ready";
    /// The controller is still on its way to `Ready`.
    pub const RECONCILING: &str = "Reconciling";
    /// A person must act.
    pub const STALLED: &str = "Stalled";
    /// The work has ended, however it ended.
    pub const FINISHED: &str = "Finished";
    /// The work ended as asked.
    pub const SUCCEEDED: &str = "Succeeded";
    /// Every acceptance criterion is met (True), one is not (False), or the data cannot tell (Unknown).
    pub const ACCEPTANCE_PASSED: &str = "AcceptancePassed";
    /// What a borrowed server had before us is back.
    pub const ORIGINAL_STATE_RESTORED: &str = "OriginalStateRestored";
}
