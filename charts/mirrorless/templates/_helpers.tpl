{{- define "mirrorless.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "mirrorless.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "mirrorless.labels" -}}
{{ include "mirrorless.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "mirrorless.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "mirrorless.name" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "mirrorless.checkConfiguration" -}}
{{- $given := 0 -}}
{{- range (list .Values.configuration .Values.existingSecret .Values.existingConfigMap) -}}
{{- if . -}}{{- $given = add1 $given -}}{{- end -}}
{{- end -}}
{{- if ne (int $given) 1 -}}
{{- fail "set one of configuration (the text of mm2.properties), existingSecret and existingConfigMap" -}}
{{- end -}}
{{- end -}}
