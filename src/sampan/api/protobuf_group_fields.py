"""Field numbers of the protobuf form, of the named groups (facts of the wire).

Job: data only. A line is a message and its fields in order of number, starting at 1; a number sets
    the count anew. `*Name` is a message whose fields lie in the JSON of its holder. Types are not
    repeated here: the schema knows them.
"""

FIELDS = """
[admissionregistration.v1]
AuditAnnotation: key valueExpression
ExpressionWarning: 2 fieldRef warning
MatchCondition: name expression
MatchResources: namespaceSelector objectSelector resourceRules excludeResourceRules 7 matchPolicy
MutatingWebhook: name clientConfig rules failurePolicy namespaceSelector sideEffects
  timeoutSeconds admissionReviewVersions matchPolicy reinvocationPolicy objectSelector
  matchConditions
MutatingWebhookConfiguration: metadata webhooks
NamedRuleWithOperations: resourceNames *RuleWithOperations
ParamKind: apiVersion kind
ParamRef: name namespace selector parameterNotFoundAction
Rule: apiGroups apiVersions resources scope
RuleWithOperations: operations *Rule
ServiceReference: namespace name path port
TypeChecking: expressionWarnings
ValidatingAdmissionPolicy: metadata spec status
ValidatingAdmissionPolicyBinding: metadata spec
ValidatingAdmissionPolicyBindingSpec: policyName paramRef matchResources validationActions
ValidatingAdmissionPolicySpec: paramKind matchConstraints validations failurePolicy
  auditAnnotations matchConditions variables
ValidatingAdmissionPolicyStatus: observedGeneration typeChecking conditions
ValidatingWebhook: name clientConfig rules failurePolicy namespaceSelector sideEffects
  timeoutSeconds admissionReviewVersions matchPolicy objectSelector matchConditions
ValidatingWebhookConfiguration: metadata webhooks
Validation: expression message reason messageExpression
Variable: name expression
WebhookClientConfig: service caBundle url
[apps.v1]
ControllerRevision: metadata data revision
DaemonSet: metadata spec status
DaemonSetCondition: type status lastTransitionTime reason message
DaemonSetSpec: selector template updateStrategy minReadySeconds 6 revisionHistoryLimit
DaemonSetStatus: currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady
  observedGeneration updatedNumberScheduled numberAvailable numberUnavailable collisionCount
  conditions
DaemonSetUpdateStrategy: type rollingUpdate
Deployment: metadata spec status
DeploymentCondition: type status 4 reason message lastUpdateTime lastTransitionTime
DeploymentSpec: replicas selector template strategy minReadySeconds revisionHistoryLimit paused 9
  progressDeadlineSeconds
DeploymentStatus: observedGeneration replicas updatedReplicas availableReplicas
  unavailableReplicas conditions readyReplicas collisionCount
DeploymentStrategy: type rollingUpdate
ReplicaSet: metadata spec status
ReplicaSetCondition: type status lastTransitionTime reason message
ReplicaSetSpec: replicas selector template minReadySeconds
ReplicaSetStatus: replicas fullyLabeledReplicas observedGeneration readyReplicas availableReplicas
  conditions
RollingUpdateDaemonSet: maxUnavailable maxSurge
RollingUpdateDeployment: maxUnavailable maxSurge
RollingUpdateStatefulSetStrategy: partition maxUnavailable
StatefulSet: metadata spec status
StatefulSetCondition: type status lastTransitionTime reason message
StatefulSetOrdinals: start
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted whenScaled
StatefulSetSpec: replicas selector template volumeClaimTemplates serviceName podManagementPolicy
  updateStrategy revisionHistoryLimit minReadySeconds persistentVolumeClaimRetentionPolicy
  ordinals
StatefulSetStatus: observedGeneration replicas readyReplicas currentReplicas updatedReplicas
  currentRevision updateRevision 9 collisionCount conditions availableReplicas
StatefulSetUpdateStrategy: type rollingUpdate
[authentication.v1]
BoundObjectReference: kind apiVersion name uid
SelfSubjectReview: metadata status
SelfSubjectReviewStatus: userInfo
TokenRequest: metadata spec status
TokenRequestSpec: audiences 3 boundObjectRef expirationSeconds
TokenRequestStatus: token expirationTimestamp
TokenReview: metadata spec status
TokenReviewSpec: token audiences
TokenReviewStatus: authenticated user error audiences
UserInfo: username uid groups extra
[authorization.v1]
FieldSelectorAttributes: rawSelector requirements
LabelSelectorAttributes: rawSelector requirements
LocalSubjectAccessReview: metadata spec status
NonResourceAttributes: path verb
NonResourceRule: verbs nonResourceURLs
ResourceAttributes: namespace verb group version resource subresource name fieldSelector
  labelSelector
ResourceRule: verbs apiGroups resources resourceNames
SelfSubjectAccessReview: metadata spec status
SelfSubjectAccessReviewSpec: resourceAttributes nonResourceAttributes
SelfSubjectRulesReview: metadata spec status
SelfSubjectRulesReviewSpec: namespace
SubjectAccessReview: metadata spec status
SubjectAccessReviewSpec: resourceAttributes nonResourceAttributes user groups extra uid
SubjectAccessReviewStatus: allowed reason evaluationError denied
SubjectRulesReviewStatus: resourceRules nonResourceRules incomplete evaluationError
[autoscaling.v1]
CrossVersionObjectReference: kind name apiVersion
HorizontalPodAutoscaler: metadata spec status
HorizontalPodAutoscalerSpec: scaleTargetRef minReplicas maxReplicas targetCPUUtilizationPercentage
HorizontalPodAutoscalerStatus: observedGeneration lastScaleTime currentReplicas desiredReplicas
  currentCPUUtilizationPercentage
Scale: metadata spec status
ScaleSpec: replicas
ScaleStatus: replicas selector
[autoscaling.v2]
ContainerResourceMetricSource: name target container
ContainerResourceMetricStatus: name current container
CrossVersionObjectReference: kind name apiVersion
ExternalMetricSource: metric target
ExternalMetricStatus: metric current
HPAScalingPolicy: type value periodSeconds
HPAScalingRules: selectPolicy policies stabilizationWindowSeconds
HorizontalPodAutoscaler: metadata spec status
HorizontalPodAutoscalerBehavior: scaleUp scaleDown
HorizontalPodAutoscalerCondition: type status lastTransitionTime reason message
HorizontalPodAutoscalerSpec: scaleTargetRef minReplicas maxReplicas metrics behavior
HorizontalPodAutoscalerStatus: observedGeneration lastScaleTime currentReplicas desiredReplicas
  currentMetrics conditions
MetricIdentifier: name selector
MetricSpec: type object pods resource external 7 containerResource
MetricStatus: type object pods resource external 7 containerResource
MetricTarget: type value averageValue averageUtilization
MetricValueStatus: value averageValue averageUtilization
ObjectMetricSource: describedObject target metric
ObjectMetricStatus: metric current describedObject
PodsMetricSource: metric target
PodsMetricStatus: metric current
ResourceMetricSource: name target
ResourceMetricStatus: name current
[batch.v1]
CronJob: metadata spec status
CronJobSpec: schedule startingDeadlineSeconds concurrencyPolicy suspend jobTemplate
  successfulJobsHistoryLimit failedJobsHistoryLimit timeZone
CronJobStatus: active 4 lastScheduleTime lastSuccessfulTime
Job: metadata spec status
JobCondition: type status lastProbeTime lastTransitionTime reason message
JobSpec: parallelism completions activeDeadlineSeconds selector manualSelector template
  backoffLimit ttlSecondsAfterFinished completionMode suspend podFailurePolicy
  backoffLimitPerIndex maxFailedIndexes podReplacementPolicy managedBy successPolicy
JobStatus: conditions startTime completionTime active succeeded failed completedIndexes
  uncountedTerminatedPods ready failedIndexes terminating
JobTemplateSpec: metadata spec
PodFailurePolicy: rules
PodFailurePolicyOnExitCodesRequirement: containerName operator values
PodFailurePolicyOnPodConditionsPattern: type status
PodFailurePolicyRule: action onExitCodes onPodConditions
SuccessPolicy: rules
SuccessPolicyRule: succeededIndexes succeededCount
UncountedTerminatedPods: succeeded failed
[certificates.v1]
CertificateSigningRequest: metadata spec status
CertificateSigningRequestCondition: type reason message lastUpdateTime lastTransitionTime status
CertificateSigningRequestSpec: request username uid groups usages extra signerName
  expirationSeconds
CertificateSigningRequestStatus: conditions certificate
[coordination.v1]
Lease: metadata spec
LeaseSpec: holderIdentity leaseDurationSeconds acquireTime renewTime leaseTransitions strategy
  preferredHolder
[discovery.v1]
Endpoint: addresses conditions hostname targetRef deprecatedTopology nodeName zone hints
EndpointConditions: ready serving terminating
EndpointHints: forZones
EndpointPort: name protocol port appProtocol
EndpointSlice: metadata endpoints ports addressType
ForZone: name
[events.v1]
Event: metadata eventTime series reportingController reportingInstance action reason regarding
  related note type deprecatedSource deprecatedFirstTimestamp deprecatedLastTimestamp
  deprecatedCount
EventSeries: count lastObservedTime
[flowcontrol.v1]
ExemptPriorityLevelConfiguration: nominalConcurrencyShares lendablePercent
FlowDistinguisherMethod: type
FlowSchema: metadata spec status
FlowSchemaCondition: type status lastTransitionTime reason message
FlowSchemaSpec: priorityLevelConfiguration matchingPrecedence distinguisherMethod rules
FlowSchemaStatus: conditions
GroupSubject: name
LimitResponse: type queuing
LimitedPriorityLevelConfiguration: nominalConcurrencyShares limitResponse lendablePercent
  borrowingLimitPercent
NonResourcePolicyRule: verbs 6 nonResourceURLs
PolicyRulesWithSubjects: subjects resourceRules nonResourceRules
PriorityLevelConfiguration: metadata spec status
PriorityLevelConfigurationCondition: type status lastTransitionTime reason message
PriorityLevelConfigurationReference: name
PriorityLevelConfigurationSpec: type limited exempt
PriorityLevelConfigurationStatus: conditions
QueuingConfiguration: queues handSize queueLengthLimit
ResourcePolicyRule: verbs apiGroups resources clusterScope namespaces
ServiceAccountSubject: namespace name
Subject: kind user group serviceAccount
UserSubject: name
[networking.v1]
HTTPIngressPath: path backend pathType
HTTPIngressRuleValue: paths
IPBlock: cidr except
Ingress: metadata spec status
IngressBackend: 3 resource service
IngressClass: metadata spec
IngressClassParametersReference: apiGroup kind name scope namespace
IngressClassSpec: controller parameters
IngressLoadBalancerIngress: ip hostname 4 ports
IngressLoadBalancerStatus: ingress
IngressPortStatus: port protocol error
IngressRule: host *IngressRuleValue
IngressRuleValue: http
IngressServiceBackend: name port
IngressSpec: defaultBackend tls rules ingressClassName
IngressStatus: loadBalancer
IngressTLS: hosts secretName
NetworkPolicy: metadata spec
NetworkPolicyEgressRule: ports to
NetworkPolicyIngressRule: ports from
NetworkPolicyPeer: podSelector namespaceSelector ipBlock
NetworkPolicyPort: protocol port endPort
NetworkPolicySpec: podSelector ingress egress policyTypes
ServiceBackendPort: name number
IPAddress: metadata spec
IPAddressSpec: parentRef
ParentReference: group resource namespace name
ServiceCIDR: metadata spec status
ServiceCIDRSpec: cidrs
ServiceCIDRStatus: conditions
[node.v1]
Overhead: podFixed
RuntimeClass: metadata handler overhead scheduling
Scheduling: nodeSelector tolerations
[policy.v1]
Eviction: metadata deleteOptions
PodDisruptionBudget: metadata spec status
PodDisruptionBudgetSpec: minAvailable selector maxUnavailable unhealthyPodEvictionPolicy
PodDisruptionBudgetStatus: observedGeneration disruptedPods disruptionsAllowed currentHealthy
  desiredHealthy expectedPods conditions
[rbac.v1]
AggregationRule: clusterRoleSelectors
ClusterRole: metadata rules aggregationRule
ClusterRoleBinding: metadata subjects roleRef
PolicyRule: verbs apiGroups resources resourceNames nonResourceURLs
Role: metadata rules
RoleBinding: metadata subjects roleRef
RoleRef: apiGroup kind name
Subject: kind apiGroup name namespace
[scheduling.v1]
PriorityClass: metadata value globalDefault description preemptionPolicy
[storage.v1]
CSIDriver: metadata spec
CSIDriverSpec: attachRequired podInfoOnMount volumeLifecycleModes storageCapacity fsGroupPolicy
  tokenRequests requiresRepublish seLinuxMount
CSINode: metadata spec
CSINodeDriver: name nodeID topologyKeys allocatable
CSINodeSpec: drivers
CSIStorageCapacity: metadata nodeTopology storageClassName capacity maximumVolumeSize
StorageClass: metadata provisioner parameters reclaimPolicy mountOptions allowVolumeExpansion
  volumeBindingMode allowedTopologies
TokenRequest: audience expirationSeconds
VolumeAttachment: metadata spec status
VolumeAttachmentSource: persistentVolumeName inlineVolumeSpec
VolumeAttachmentSpec: attacher source nodeName
VolumeAttachmentStatus: attached attachmentMetadata attachError detachError
VolumeError: time message
VolumeNodeResources: count
VolumeAttributesClass: metadata driverName parameters
"""
