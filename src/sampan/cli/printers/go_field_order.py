"""In which order Go's structs have their fields, where that is not the order of their numbers.

Job: data for go_order.py: a type, and the fields that come first in it, in their order.
"""

FIELD_ORDER = """\
admissionregistration.v1.MutatingWebhook: name clientConfig rules failurePolicy matchPolicy
    namespaceSelector objectSelector
admissionregistration.v1.ValidatingWebhook: name clientConfig rules failurePolicy matchPolicy
    namespaceSelector objectSelector
admissionregistration.v1.WebhookClientConfig: url
apps.v1.DeploymentCondition: type status lastUpdateTime lastTransitionTime
apps.v1.DeploymentStatus: observedGeneration replicas updatedReplicas readyReplicas
    availableReplicas unavailableReplicas terminatingReplicas
apps.v1.ReplicaSetSpec: replicas minReadySeconds
apps.v1.ReplicaSetStatus: replicas fullyLabeledReplicas readyReplicas availableReplicas
    terminatingReplicas
authentication.v1.TokenRequestSpec: audiences expirationSeconds
authentication.v1.TokenReviewStatus: authenticated user audiences
authorization.v1.SubjectAccessReviewStatus: allowed denied
autoscaling.v2.HPAScalingRules: stabilizationWindowSeconds
autoscaling.v2.MetricSpec: type object pods resource containerResource
autoscaling.v2.MetricStatus: type object pods resource containerResource
batch.v1.CronJobSpec: schedule timeZone
batch.v1.JobSpec: parallelism completions activeDeadlineSeconds podFailurePolicy successPolicy
    backoffLimit backoffLimitPerIndex maxFailedIndexes
batch.v1.JobStatus: conditions startTime completionTime active succeeded failed terminating
    completedIndexes failedIndexes
certificates.v1.CertificateSigningRequestCondition: type status
certificates.v1.CertificateSigningRequestSpec: request signerName expirationSeconds usages
core.v1.ClusterTrustBundleProjection: name signerName labelSelector optional
core.v1.ConfigMap: immutable
core.v1.Container: name image command args workingDir ports envFrom env resources resizePolicy
    restartPolicy restartPolicyRules volumeMounts volumeDevices livenessProbe readinessProbe
    startupProbe lifecycle terminationMessagePath terminationMessagePolicy
core.v1.EndpointAddress: ip hostname nodeName
core.v1.EphemeralContainer: name image command args workingDir ports envFrom env resources
    resizePolicy restartPolicy restartPolicyRules volumeMounts volumeDevices livenessProbe
    readinessProbe startupProbe lifecycle terminationMessagePath terminationMessagePolicy
core.v1.EphemeralContainerCommon: name image command args workingDir ports envFrom env resources
    resizePolicy restartPolicy restartPolicyRules volumeMounts volumeDevices livenessProbe
    readinessProbe startupProbe lifecycle terminationMessagePath terminationMessagePolicy
core.v1.ISCSIPersistentVolumeSource: targetPortal iqn lun iscsiInterface fsType readOnly portals
    chapAuthDiscovery chapAuthSession
core.v1.ISCSIVolumeSource: targetPortal iqn lun iscsiInterface fsType readOnly portals
    chapAuthDiscovery chapAuthSession
core.v1.NodeSpec: podCIDR podCIDRs providerID unschedulable taints configSource
core.v1.PersistentVolumeClaimSpec: accessModes selector
core.v1.PodCondition: type observedGeneration
core.v1.PodSecurityContext: seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot
    supplementalGroups supplementalGroupsPolicy
core.v1.PodSpec: volumes initContainers containers ephemeralContainers restartPolicy
    terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName
    serviceAccount automountServiceAccountToken nodeName hostNetwork hostPID hostIPC
    shareProcessNamespace
core.v1.PodStatus: observedGeneration phase conditions message reason nominatedNodeName hostIP
    hostIPs podIP podIPs startTime initContainerStatuses
core.v1.ReplicationControllerSpec: replicas minReadySeconds
core.v1.ReplicationControllerStatus: replicas fullyLabeledReplicas readyReplicas availableReplicas
core.v1.Secret: immutable data stringData
core.v1.SecurityContext: capabilities privileged seLinuxOptions windowsOptions runAsUser
    runAsGroup
core.v1.ServicePort: name protocol appProtocol
core.v1.ServiceSpec: ports selector clusterIP clusterIPs type externalIPs sessionAffinity
    loadBalancerIP loadBalancerSourceRanges externalName externalTrafficPolicy healthCheckNodePort
    publishNotReadyAddresses sessionAffinityConfig ipFamilies
core.v1.Volume: name hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs
    iscsi glusterfs persistentVolumeClaim rbd flexVolume cinder cephfs flocker downwardAPI fc
    azureFile configMap vsphereVolume quobyte azureDisk photonPersistentDisk projected
core.v1.VolumeMount: name readOnly recursiveReadOnly
core.v1.VolumeSource: hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs
    iscsi glusterfs persistentVolumeClaim rbd flexVolume cinder cephfs flocker downwardAPI fc
    azureFile configMap vsphereVolume quobyte azureDisk photonPersistentDisk projected
discovery.v1.EndpointSlice: addressType
networking.v1.HTTPIngressPath: path pathType
networking.v1.IngressBackend: service
networking.v1.IngressSpec: ingressClassName
resource.v1.AllocatedDeviceStatus: driver pool device shareID
meta.v1.OwnerReference: apiVersion
meta.v1.StatusDetails: name group kind uid
"""
