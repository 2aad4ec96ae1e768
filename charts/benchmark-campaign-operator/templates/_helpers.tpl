{{/* Name of every object of this release. */}}
{{- define "operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "operator.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "operator.labels" -}}
{{ include "operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "operator.image" -}}
{{- printf "%s:%s" .Values.image.operator.repository (.Values.image.operator.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "operator.runnerImage" -}}
{{- printf "%s:%s" .Values.image.runner.repository (.Values.image.runner.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{/* What the restricted pod security level asks of a pod, and of a container. */}}
{{- define "operator.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "operator.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Namespaces in which campaigns are known to live, as a comma-separated list. */}}
{{- define "operator.campaignNamespaces" -}}
{{- join "," (.Values.watchNamespaces | default .Values.secretNamespaces) -}}
{{- end -}}

{{/*
What the operator does in a namespace with campaigns. Secrets are apart (operator.secretRules), since cluster-wide
mode must not read them everywhere.
*/}}
{{- define "operator.workRules" -}}
# Campaigns: read; `operator drain` suspends them.
- apiGroups: [benchmark-campaign.dev]
  resources: [benchmarkcampaigns]
  verbs: [get, list, watch, patch]
# Targets and runs: campaigns create them, and take back those that are no longer wanted.
- apiGroups: [benchmark-campaign.dev]
  resources: [benchmarktargets, benchmarkruns]
  verbs: [get, list, watch, create, delete]
# The finalizer of a borrowed target, until what its server had is put back.
- apiGroups: [benchmark-campaign.dev]
  resources: [benchmarktargets]
  verbs: [update]
# Their status, where progress, evidence, results and verdicts are written: by whole replacement, so by update alone.
- apiGroups: [benchmark-campaign.dev]
  resources: [benchmarkcampaigns/status, benchmarktargets/status, benchmarkruns/status]
  verbs: [update]
# Owner references that block the owner's deletion until what it owns is gone.
- apiGroups: [benchmark-campaign.dev]
  resources: [benchmarkcampaigns/finalizers, benchmarktargets/finalizers, benchmarkruns/finalizers]
  verbs: [update]
# Managed databases are bare pods, deleted and created again for each restart; pods of Jobs are watched for their end.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
# The volumes, the name and the configurations of a managed database, and the name under which several load generators
# meet: made once, removed with their target.
- apiGroups: [""]
  resources: [persistentvolumeclaims, services, configmaps]
  verbs: [get, create]
# Jobs that prepare data and apply load: removed with their run, or by the cluster when they are old.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create]
# The story that `kubectl describe` tells.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{- define "operator.secretRules" -}}
# Logins of managed databases: made once, read when they are needed, removed with their target. Never listed.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create]
{{- end -}}
