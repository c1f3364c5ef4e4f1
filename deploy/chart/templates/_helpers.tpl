{{/* The name of all objects, with room for what is added to it. Helm's limit for a release's name is 53. */}}
{{- define "precedent.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* What tells our pods from others. Takes the scope as "root" and the component as "part". */}}
{{- define "precedent.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "precedent.labels" -}}
{{ include "precedent.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The parts of a pod that receivers and workers share. Takes "secrets", names in the values, and "size". */}}
{{- define "precedent.pod" -}}
serviceAccountName: {{ include "precedent.name" .root }}
automountServiceAccountToken: false
enableServiceLinks: false # they would set PRECEDENT_PORT
shareProcessNamespace: true # the pod's own first process then collects orphans, as `init` does in the compose file
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile:
    type: RuntimeDefault
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "precedent.selector" . | nindent 8 }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: data
    emptyDir:
      sizeLimit: {{ .size }}
  - name: tmp
    emptyDir:
      sizeLimit: 1Gi
  - name: secrets
    projected:
      defaultMode: 0440
      sources:
        {{- range .secrets }}
        {{- $file := kebabcase . }}
        {{- with index $.root.Values.secrets . }}
        {{- if .name }}
        - secret:
            name: {{ .name }}
            items:
              - key: {{ .key }}
                path: {{ $file }}
        {{- end }}
        {{- end }}
        {{- end }}
{{- end }}

{{/* The parts of a container that receivers and workers share. */}}
{{/* Kubernetes has no limit of open files: each process raises its own as far as the container runtime lets it. */}}
{{- define "precedent.container" -}}
image: {{ printf "%s:%s" .root.Values.image.repository (.root.Values.image.tag | default .root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: data
    mountPath: /data
  - name: tmp
    mountPath: /tmp
  - name: secrets
    mountPath: /run/secrets/precedent
    readOnly: true
{{- end }}

{{/* Variables of the environment that receivers and workers share. */}}
{{- define "precedent.env" -}}
- name: PRECEDENT_APP_ID
  value: {{ .root.Values.appId | int64 | quote }}
- name: PRECEDENT_DATA
  value: /data
{{- range .secrets }}
{{- if (index $.root.Values.secrets .).name }}
- name: PRECEDENT_{{ . | snakecase | upper }}_FILE
  value: /run/secrets/precedent/{{ kebabcase . }}
{{- end }}
{{- end }}
{{- range $name, $value := .root.Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
