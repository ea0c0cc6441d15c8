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

{{/* Of every pod; `user` is a user of its image. */}}
{{- define "scheduling.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .user }}
runAsGroup: {{ .user }}
fsGroup: {{ .user }}
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
securityContext: {{- include "scheduling.podSecurity" (dict "user" 10001) | nindent 2 }}
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
securityContext: {{- include "scheduling.containerSecurity" . | nindent 2 }}
volumeMounts:
  - {name: secrets, mountPath: /run/secrets/scheduling, readOnly: true}
  - {name: var, mountPath: /var/lib/scheduling}
  - {name: var, mountPath: /tmp, subPath: tmp}
  - {name: memory, mountPath: /dev/shm}
{{- end }}
