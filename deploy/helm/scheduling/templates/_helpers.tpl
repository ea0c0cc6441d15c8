{{- define "scheduling.labels" -}}
app.kubernetes.io/name: scheduling
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "scheduling.instance" -}}
app.kubernetes.io/name: scheduling
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "scheduling.selector" -}}
{{ include "scheduling.instance" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "scheduling.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* Of every pod. The user is the one of the service's image. */}}
{{- define "scheduling.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "scheduling.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Settings: values are in the pod, secrets are files. */}}
{{- define "scheduling.environment" -}}
- {name: PUBLIC_URL, value: {{ .Values.publicUrl | quote }}}
- {name: HOME_NUMBER, value: {{ .Values.home | quote }}}
- {name: REQUIRE_SECRET_KEY, value: "true"}
- {name: METRICS_DIR, value: /dev/shm/metrics}
{{- range .Values.secrets }}
- {name: {{ . | upper | replace "-" "_" }}_FILE, value: /run/secrets/scheduling/{{ . }}}
{{- end }}
{{- range $name, $value := .Values.settings }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Of every pod. The checksum makes `helm upgrade` replace the pods when the Secret has changed. */}}
{{- define "scheduling.podAnnotations" -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace .Values.existingSecret | default dict }}
checksum/secret: {{ get $secret "data" | toJson | sha256sum }}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Of every pod: where it runs. */}}
{{- define "scheduling.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "scheduling.spread" -}}
topologySpreadConstraints:
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "scheduling.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}

{{- define "scheduling.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "scheduling.labels" .root | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- include "scheduling.selector" . | nindent 6 }}
{{- end }}

{{- define "scheduling.pod" -}}
securityContext: {{- include "scheduling.podSecurity" . | nindent 2 }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with include "scheduling.placement" . }}
{{ . }}
{{- end }}
volumes:
  - name: secrets
    secret:
      secretName: {{ .Values.existingSecret }}
      defaultMode: 0440
  - name: var
    emptyDir: {sizeLimit: 1Gi}
  - name: memory
    emptyDir: {medium: Memory, sizeLimit: 64Mi}
{{- end }}

{{- define "scheduling.container" -}}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext: {{- include "scheduling.containerSecurity" . | nindent 2 }}
volumeMounts:
  - {name: secrets, mountPath: /run/secrets/scheduling, readOnly: true}
  - {name: var, mountPath: /var/lib/scheduling}
  - {name: var, mountPath: /tmp, subPath: tmp}
  - {name: memory, mountPath: /dev/shm}
{{- end }}

{{/* A pod of web of this image. */}}
{{- define "scheduling.webPod" -}}
{{- $ := .root }}
metadata:
  labels:
    {{- include "scheduling.selector" (dict "root" $ "component" "web") | nindent 4 }}
    scheduling/track: {{ .track }}
  annotations:
    {{- include "scheduling.podAnnotations" $ | nindent 4 }}
    prometheus.io/scrape: "true"
    prometheus.io/port: "8000"
spec:
  {{- include "scheduling.pod" $ | nindent 2 }}
  # preStop and the requests in progress.
  terminationGracePeriodSeconds: 45
  {{- include "scheduling.spread" (dict "root" $ "component" "web") | nindent 2 }}
  containers:
    - name: web
      image: {{ .image }}
      {{- include "scheduling.container" $ | nindent 6 }}
      env:
        {{- include "scheduling.environment" $ | nindent 8 }}
        - {name: WEB_PROCESSES, value: {{ $.Values.web.processes | quote }}}
        - {name: WEB_THREADS, value: {{ $.Values.web.threads | quote }}}
        - {name: WEB_KEEPALIVE, value: {{ $.Values.web.keepalive | quote }}}
      ports:
        - {name: http, containerPort: 8000}
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
      # Not /readyz: in an outage of the database, 503 with Retry-After is a better answer than
      # that of an ingress without a backend.
      readinessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 5
        timeoutSeconds: 5
      lifecycle:
        # The ingress goes on sending for a moment.
        preStop:
          exec: {command: [sleep, "10"]}
      resources: {{- toYaml $.Values.web.resources | nindent 8 }}
{{- end }}

{{/* A probe of a worker: its newest file of liveness is younger than so many minutes. */}}
{{- define "scheduling.aliveWithin" -}}
exec:
  command:
    - sh
    - -c
    # Written by the worker every few seconds, also without Redis.
    - test -n "$(find /var/lib/scheduling -name 'worker-*.alive' -mmin -{{ . }})"
{{- end }}

{{- define "scheduling.beatAlive" -}}
exec:
  command:
    - sh
    - -c
    # Celery beat's schedule file, written at the start and every few minutes.
    - test -n "$(find /var/lib/scheduling -name 'celerybeat-schedule*' -mmin -10)"
{{- end }}
