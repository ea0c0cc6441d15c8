{{- define "scheduling.labels" -}}
app.kubernetes.io/name: scheduling
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "scheduling.selector" -}}
app.kubernetes.io/name: scheduling
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "scheduling.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Settings: values are in the pod, secrets are files. */}}
{{- define "scheduling.environment" -}}
- {name: PUBLIC_URL, value: {{ .Values.publicUrl | quote }}}
- {name: REQUIRE_SECRET_KEY, value: "true"}
- {name: METRICS_DIR, value: /dev/shm/metrics}
{{- range .Values.secrets }}
- {name: {{ . | upper | replace "-" "_" }}_FILE, value: /run/secrets/scheduling/{{ . }}}
{{- end }}
{{- range $name, $value := .Values.settings }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- define "scheduling.pod" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: secrets
    secret:
      secretName: {{ .Values.existingSecret }}
      defaultMode: 0440
  - name: var
    emptyDir: {}
  - name: memory
    emptyDir: {medium: Memory, sizeLimit: 64Mi}
{{- end }}

{{- define "scheduling.container" -}}
image: {{ include "scheduling.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: secrets, mountPath: /run/secrets/scheduling, readOnly: true}
  - {name: var, mountPath: /var/lib/scheduling}
  - {name: var, mountPath: /tmp, subPath: tmp}
  - {name: memory, mountPath: /dev/shm}
{{- end }}
