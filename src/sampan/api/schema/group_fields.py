"""Field numbers of the protobuf form, of the named groups (facts of the wire).

Job: data only. A line is a message and its fields in order of number, starting at 1; a number sets
    the count anew. `*Name` is a message whose fields lie in the JSON of its holder. `name!` is a
    field that Go writes in any case (no omitempty, or a struct or time held by value), and `name?`
    a scalar that it holds by pointer, whose zero is told from nothing; `name?!` is a list of which
    the same is true until it is stored; the zero of any other field is the same as its absence.
    Types are not repeated here: the schema knows them.
"""

FIELDS = """
[io.k8s.api.admissionregistration.v1]
AuditAnnotation: key! valueExpression!
ExpressionWarning: 2 fieldRef! warning!
MatchCondition: name! expression!
MatchResources: namespaceSelector objectSelector resourceRules excludeResourceRules 7 matchPolicy?
MutatingWebhook: name! clientConfig! rules failurePolicy? namespaceSelector sideEffects!
  timeoutSeconds? admissionReviewVersions! matchPolicy? reinvocationPolicy? objectSelector
  matchConditions
MutatingWebhookConfiguration: metadata! webhooks
NamedRuleWithOperations: resourceNames *RuleWithOperations
ParamKind: apiVersion kind
ParamRef: name namespace selector parameterNotFoundAction?
Rule: apiGroups apiVersions resources scope?
RuleWithOperations: operations *Rule
ServiceReference: namespace! name! path? port?
TypeChecking: expressionWarnings
ValidatingAdmissionPolicy: metadata! spec! status!
ValidatingAdmissionPolicyBinding: metadata! spec!
ValidatingAdmissionPolicyBindingSpec: policyName paramRef matchResources validationActions
ValidatingAdmissionPolicySpec: paramKind matchConstraints validations failurePolicy?
  auditAnnotations matchConditions variables
ValidatingAdmissionPolicyStatus: observedGeneration typeChecking conditions
ValidatingWebhook: name! clientConfig! rules failurePolicy? namespaceSelector sideEffects!
  timeoutSeconds? admissionReviewVersions! matchPolicy? objectSelector matchConditions
ValidatingWebhookConfiguration: metadata! webhooks
Validation: expression! message reason? messageExpression
Variable: name! expression!
WebhookClientConfig: service caBundle url?
[io.k8s.api.admissionregistration.v1beta1]
ApplyConfiguration: expression
JSONPatch: expression
MatchCondition: name! expression!
MatchResources: namespaceSelector objectSelector resourceRules excludeResourceRules 7 matchPolicy?
MutatingAdmissionPolicy: metadata! spec!
MutatingAdmissionPolicyBinding: metadata! spec!
MutatingAdmissionPolicyBindingSpec: policyName paramRef matchResources
MutatingAdmissionPolicySpec: paramKind matchConstraints variables mutations failurePolicy?
  matchConditions reinvocationPolicy
Mutation: 2 patchType! applyConfiguration jsonPatch
NamedRuleWithOperations: resourceNames *RuleWithOperations
ParamKind: apiVersion kind
ParamRef: name namespace selector parameterNotFoundAction?
Rule: apiGroups apiVersions resources scope?
RuleWithOperations: operations *Rule
Variable: name! expression!
[io.k8s.api.apps.v1]
ControllerRevision: metadata! data revision!
DaemonSet: metadata! spec! status!
DaemonSetCondition: type! status! lastTransitionTime! reason message
DaemonSetSpec: selector template! updateStrategy! minReadySeconds 6 revisionHistoryLimit?
DaemonSetStatus: currentNumberScheduled! numberMisscheduled! desiredNumberScheduled! numberReady!
  observedGeneration updatedNumberScheduled numberAvailable numberUnavailable collisionCount?
  conditions
DaemonSetUpdateStrategy: type rollingUpdate
Deployment: metadata! spec! status!
DeploymentCondition: type! status! 4 reason message lastUpdateTime! lastTransitionTime!
DeploymentSpec: replicas? selector template! strategy! minReadySeconds revisionHistoryLimit?
  paused 9 progressDeadlineSeconds?
DeploymentStatus: observedGeneration replicas updatedReplicas availableReplicas
  unavailableReplicas conditions readyReplicas collisionCount? terminatingReplicas?
DeploymentStrategy: type rollingUpdate
ReplicaSet: metadata! spec! status!
ReplicaSetCondition: type! status! lastTransitionTime! reason message
ReplicaSetSpec: replicas? selector template! minReadySeconds
ReplicaSetStatus: replicas! fullyLabeledReplicas observedGeneration readyReplicas
  availableReplicas conditions terminatingReplicas?
RollingUpdateDaemonSet: maxUnavailable maxSurge
RollingUpdateDeployment: maxUnavailable maxSurge
RollingUpdateStatefulSetStrategy: partition? maxUnavailable
StatefulSet: metadata! spec! status!
StatefulSetCondition: type! status! lastTransitionTime! reason message
StatefulSetOrdinals: start?
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted whenScaled
StatefulSetSpec: replicas? selector template! volumeClaimTemplates serviceName!
  podManagementPolicy updateStrategy! revisionHistoryLimit? minReadySeconds
  persistentVolumeClaimRetentionPolicy ordinals
StatefulSetStatus: observedGeneration replicas! readyReplicas currentReplicas updatedReplicas
  currentRevision updateRevision 9 collisionCount? conditions availableReplicas!
StatefulSetUpdateStrategy: type rollingUpdate
[io.k8s.api.authentication.v1]
BoundObjectReference: kind apiVersion name uid
SelfSubjectReview: metadata! status!
SelfSubjectReviewStatus: userInfo!
TokenRequest: metadata! spec! status!
TokenRequestSpec: audiences! 3 boundObjectRef expirationSeconds?
TokenRequestStatus: token! expirationTimestamp!
TokenReview: metadata! spec! status!
TokenReviewSpec: token audiences
TokenReviewStatus: authenticated user! error audiences
UserInfo: username uid groups extra
[io.k8s.api.authorization.v1]
FieldSelectorAttributes: rawSelector requirements
LabelSelectorAttributes: rawSelector requirements
LocalSubjectAccessReview: metadata! spec! status!
NonResourceAttributes: path verb
NonResourceRule: verbs! nonResourceURLs
ResourceAttributes: namespace verb group version resource subresource name fieldSelector
  labelSelector
ResourceRule: verbs! apiGroups resources resourceNames
SelfSubjectAccessReview: metadata! spec! status!
SelfSubjectAccessReviewSpec: resourceAttributes nonResourceAttributes
SelfSubjectRulesReview: metadata! spec! status!
SelfSubjectRulesReviewSpec: namespace
SubjectAccessReview: metadata! spec! status!
SubjectAccessReviewSpec: resourceAttributes nonResourceAttributes user groups extra uid
SubjectAccessReviewStatus: allowed! reason evaluationError denied
SubjectRulesReviewStatus: resourceRules! nonResourceRules! incomplete! evaluationError
[io.k8s.api.autoscaling.v1]
CrossVersionObjectReference: kind! name! apiVersion
HorizontalPodAutoscaler: metadata! spec! status!
HorizontalPodAutoscalerSpec: scaleTargetRef! minReplicas? maxReplicas!
  targetCPUUtilizationPercentage?
HorizontalPodAutoscalerStatus: observedGeneration? lastScaleTime currentReplicas! desiredReplicas!
  currentCPUUtilizationPercentage?
Scale: metadata! spec! status!
ScaleSpec: replicas
ScaleStatus: replicas! selector
[io.k8s.api.autoscaling.v2]
ContainerResourceMetricSource: name! target! container!
ContainerResourceMetricStatus: name! current! container!
CrossVersionObjectReference: kind! name! apiVersion
ExternalMetricSource: metric! target!
ExternalMetricStatus: metric! current!
HPAScalingPolicy: type! value! periodSeconds!
HPAScalingRules: selectPolicy? policies stabilizationWindowSeconds? tolerance
HorizontalPodAutoscaler: metadata! spec! status!
HorizontalPodAutoscalerBehavior: scaleUp scaleDown
HorizontalPodAutoscalerCondition: type! status! lastTransitionTime! reason message
HorizontalPodAutoscalerSpec: scaleTargetRef! minReplicas? maxReplicas! metrics behavior
HorizontalPodAutoscalerStatus: observedGeneration? lastScaleTime currentReplicas desiredReplicas!
  currentMetrics! conditions
MetricIdentifier: name! selector
MetricSpec: type! object pods resource external 7 containerResource
MetricStatus: type! object pods resource external 7 containerResource
MetricTarget: type! value averageValue averageUtilization?
MetricValueStatus: value averageValue averageUtilization?
ObjectMetricSource: describedObject! target! metric!
ObjectMetricStatus: metric! current! describedObject!
PodsMetricSource: metric! target!
PodsMetricStatus: metric! current!
ResourceMetricSource: name! target!
ResourceMetricStatus: name! current!
[io.k8s.api.batch.v1]
CronJob: metadata! spec! status!
CronJobSpec: schedule! startingDeadlineSeconds? concurrencyPolicy suspend? jobTemplate!
  successfulJobsHistoryLimit? failedJobsHistoryLimit? timeZone?
CronJobStatus: active 4 lastScheduleTime lastSuccessfulTime
Job: metadata! spec! status!
JobCondition: type! status! lastProbeTime! lastTransitionTime! reason message
JobSpec: parallelism? completions? activeDeadlineSeconds? selector manualSelector? template!
  backoffLimit? ttlSecondsAfterFinished? completionMode? suspend? podFailurePolicy
  backoffLimitPerIndex? maxFailedIndexes? podReplacementPolicy? managedBy? successPolicy
JobStatus: conditions startTime completionTime active succeeded failed completedIndexes
  uncountedTerminatedPods ready? failedIndexes? terminating?
JobTemplateSpec: metadata! spec!
PodFailurePolicy: rules!
PodFailurePolicyOnExitCodesRequirement: containerName? operator! values!
PodFailurePolicyOnPodConditionsPattern: type! status!
PodFailurePolicyRule: action! onExitCodes onPodConditions
SuccessPolicy: rules!
SuccessPolicyRule: succeededIndexes? succeededCount?
UncountedTerminatedPods: succeeded failed
[io.k8s.api.certificates.v1]
CertificateSigningRequest: metadata! spec! status!
CertificateSigningRequestCondition: type! reason message lastUpdateTime! lastTransitionTime! status!
CertificateSigningRequestSpec: request! username uid groups usages extra signerName!
  expirationSeconds?
CertificateSigningRequestStatus: conditions certificate
[io.k8s.api.coordination.v1]
Lease: metadata! spec!
LeaseSpec: holderIdentity? leaseDurationSeconds? acquireTime renewTime leaseTransitions? strategy?
  preferredHolder?
[io.k8s.api.discovery.v1]
Endpoint: addresses! conditions! hostname? targetRef deprecatedTopology nodeName? zone? hints
EndpointConditions: ready? serving? terminating?
EndpointHints: forZones forNodes
EndpointPort: name? protocol? port? appProtocol?
EndpointSlice: metadata! endpoints! ports! addressType!
ForNode: name!
ForZone: name!
[io.k8s.api.events.v1]
Event: metadata! eventTime! series reportingController reportingInstance action reason regarding!
  related note type deprecatedSource! deprecatedFirstTimestamp! deprecatedLastTimestamp!
  deprecatedCount
EventSeries: count! lastObservedTime!
[io.k8s.api.flowcontrol.v1]
ExemptPriorityLevelConfiguration: nominalConcurrencyShares? lendablePercent?
FlowDistinguisherMethod: type!
FlowSchema: metadata! spec! status!
FlowSchemaCondition: type status lastTransitionTime! reason message
FlowSchemaSpec: priorityLevelConfiguration! matchingPrecedence! distinguisherMethod rules
FlowSchemaStatus: conditions
GroupSubject: name!
LimitResponse: type! queuing
LimitedPriorityLevelConfiguration: nominalConcurrencyShares? limitResponse! lendablePercent?
  borrowingLimitPercent?
NonResourcePolicyRule: verbs! 6 nonResourceURLs!
PolicyRulesWithSubjects: subjects! resourceRules nonResourceRules
PriorityLevelConfiguration: metadata! spec! status!
PriorityLevelConfigurationCondition: type status lastTransitionTime! reason message
PriorityLevelConfigurationReference: name!
PriorityLevelConfigurationSpec: type! limited exempt
PriorityLevelConfigurationStatus: conditions
QueuingConfiguration: queues! handSize! queueLengthLimit!
ResourcePolicyRule: verbs! apiGroups! resources! clusterScope namespaces!
ServiceAccountSubject: namespace! name!
Subject: kind! user group serviceAccount
UserSubject: name!
[io.k8s.api.networking.v1]
HTTPIngressPath: path backend! pathType!
HTTPIngressRuleValue: paths!
IPAddress: metadata! spec!
IPAddressSpec: parentRef
IPBlock: cidr! except
Ingress: metadata! spec! status!
IngressBackend: 3 resource service
IngressClass: metadata! spec!
IngressClassParametersReference: apiGroup? kind! name! scope? namespace?
IngressClassSpec: controller parameters
IngressLoadBalancerIngress: ip hostname 4 ports
IngressLoadBalancerStatus: ingress
IngressPortStatus: port! protocol! error?
IngressRule: host *IngressRuleValue
IngressRuleValue: http
IngressServiceBackend: name! port!
IngressSpec: defaultBackend tls rules ingressClassName?
IngressStatus: loadBalancer!
IngressTLS: hosts secretName
NetworkPolicy: metadata! spec!
NetworkPolicyEgressRule: ports to
NetworkPolicyIngressRule: ports from
NetworkPolicyPeer: podSelector namespaceSelector ipBlock
NetworkPolicyPort: protocol? port endPort?
NetworkPolicySpec: podSelector! ingress egress policyTypes
ParentReference: group resource namespace name
ServiceBackendPort: name number
ServiceCIDR: metadata! spec! status!
ServiceCIDRSpec: cidrs
ServiceCIDRStatus: conditions
[io.k8s.api.node.v1]
Overhead: podFixed
RuntimeClass: metadata! handler! overhead scheduling
Scheduling: nodeSelector tolerations
[io.k8s.api.policy.v1]
Eviction: metadata! deleteOptions
PodDisruptionBudget: metadata! spec! status!
PodDisruptionBudgetSpec: minAvailable selector maxUnavailable unhealthyPodEvictionPolicy?
PodDisruptionBudgetStatus: observedGeneration disruptedPods disruptionsAllowed! currentHealthy!
  desiredHealthy! expectedPods! conditions
[io.k8s.api.rbac.v1]
AggregationRule: clusterRoleSelectors
ClusterRole: metadata! rules! aggregationRule
ClusterRoleBinding: metadata! subjects roleRef!
PolicyRule: verbs! apiGroups resources resourceNames nonResourceURLs
Role: metadata! rules!
RoleBinding: metadata! subjects roleRef!
RoleRef: apiGroup! kind! name!
Subject: kind! apiGroup name! namespace
[io.k8s.api.resource.v1]
AllocatedDeviceStatus: driver! pool! device! conditions! data networkData shareID?
AllocationResult: devices! 3 nodeSelector 5 allocationTimestamp
CELDeviceSelector: expression!
CapacityRequestPolicy: default 3 validValues validRange
CapacityRequestPolicyRange: min max step
CapacityRequirements: requests
Counter: value!
CounterSet: name! counters
Device: name! attributes capacity consumesCounters nodeName? nodeSelector allNodes? taints
  bindsToNode? bindingConditions bindingFailureConditions allowMultipleAllocations?
DeviceAllocationConfiguration: source! requests *DeviceConfiguration
DeviceAllocationResult: results config
DeviceAttribute: 2 int? bool? string? version?
DeviceCapacity: value! requestPolicy
DeviceClaim: requests! constraints config
DeviceClaimConfiguration: requests *DeviceConfiguration
DeviceClass: metadata! spec!
DeviceClassConfiguration: *DeviceConfiguration
DeviceClassSpec: selectors config 4 extendedResourceName?
DeviceConfiguration: opaque
DeviceConstraint: requests matchAttribute? distinctAttribute?
DeviceCounterConsumption: counterSet! counters
DeviceRequest: name! exactly firstAvailable
DeviceRequestAllocationResult: request! driver! pool! device! adminAccess? tolerations
  bindingConditions bindingFailureConditions shareID? consumedCapacity
DeviceSelector: cel
DeviceSubRequest: name! deviceClassName! selectors allocationMode count tolerations capacity
DeviceTaint: key! value effect! timeAdded
DeviceToleration: key operator value effect tolerationSeconds?
ExactDeviceRequest: deviceClassName! selectors allocationMode count adminAccess? tolerations
  capacity
NetworkDeviceData: interfaceName ips hardwareAddress
OpaqueDeviceConfiguration: driver! parameters
ResourceClaim: metadata! spec! status!
ResourceClaimConsumerReference: apiGroup 3 resource! name! uid!
ResourceClaimSpec: devices!
ResourceClaimStatus: allocation reservedFor 4 devices
ResourceClaimTemplate: metadata! spec!
ResourceClaimTemplateSpec: metadata! spec!
ResourcePool: name! generation! resourceSliceCount!
ResourceSlice: metadata! spec!
ResourceSliceSpec: driver! pool! nodeName? nodeSelector allNodes? devices! perDeviceNodeSelection?
  sharedCounters
[io.k8s.api.scheduling.v1]
PriorityClass: metadata! value! globalDefault description preemptionPolicy?
[io.k8s.api.storage.v1]
CSIDriver: metadata! spec!
CSIDriverSpec: attachRequired? podInfoOnMount? volumeLifecycleModes storageCapacity?
  fsGroupPolicy? tokenRequests requiresRepublish? seLinuxMount?
  nodeAllocatableUpdatePeriodSeconds? serviceAccountTokenInSecrets?
CSINode: metadata! spec!
CSINodeDriver: name! nodeID! topologyKeys! allocatable
CSINodeSpec: drivers!
CSIStorageCapacity: metadata! nodeTopology storageClassName! capacity maximumVolumeSize
StorageClass: metadata! provisioner! parameters reclaimPolicy? mountOptions allowVolumeExpansion?
  volumeBindingMode? allowedTopologies
TokenRequest: audience! expirationSeconds?
VolumeAttachment: metadata! spec! status!
VolumeAttachmentSource: persistentVolumeName? inlineVolumeSpec
VolumeAttachmentSpec: attacher! source! nodeName!
VolumeAttachmentStatus: attached! attachmentMetadata attachError detachError
VolumeAttributesClass: metadata! driverName! parameters
VolumeError: time! message errorCode?
VolumeNodeResources: count?
[io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1]
CustomResourceColumnDefinition: name! type! format description priority jsonPath!
CustomResourceConversion: strategy! webhook
CustomResourceDefinition: metadata! spec! status!
CustomResourceDefinitionCondition: type! status! lastTransitionTime! reason message
  observedGeneration
CustomResourceDefinitionNames: plural! singular shortNames kind! listKind categories
CustomResourceDefinitionSpec: group! 3 names! scope! 7 versions?! 9 conversion preserveUnknownFields
CustomResourceDefinitionStatus: conditions! acceptedNames! storedVersions! observedGeneration
CustomResourceDefinitionVersion: name! served! storage! schema subresources additionalPrinterColumns
  deprecated deprecationWarning? selectableFields
CustomResourceSubresourceScale: specReplicasPath! statusReplicasPath! labelSelectorPath?
CustomResourceSubresourceStatus:
CustomResourceSubresources: status scale
CustomResourceValidation: openAPIV3Schema
ExternalDocumentation: description url
JSONSchemaProps: id $schema $ref? description type format title default maximum? exclusiveMaximum
  minimum? exclusiveMinimum maxLength? minLength? pattern maxItems? minItems? uniqueItems
  multipleOf? enum maxProperties? minProperties? required items allOf oneOf anyOf not properties
  additionalProperties patternProperties dependencies additionalItems definitions externalDocs
  example nullable x-kubernetes-preserve-unknown-fields? x-kubernetes-embedded-resource
  x-kubernetes-int-or-string x-kubernetes-list-map-keys x-kubernetes-list-type?
  x-kubernetes-map-type? x-kubernetes-validations
SelectableField: jsonPath!
ServiceReference: namespace! name! path? port?
ValidationRule: rule! message messageExpression reason? fieldPath optionalOldSelf?
WebhookClientConfig: service caBundle url?
WebhookConversion: 2 clientConfig conversionReviewVersions!
[io.k8s.kube-aggregator.pkg.apis.apiregistration.v1]
APIService: metadata! spec! status!
APIServiceCondition: type! status! lastTransitionTime! reason message
APIServiceSpec: service group version insecureSkipTLSVerify caBundle 7 groupPriorityMinimum!
  versionPriority!
APIServiceStatus: conditions
ServiceReference: namespace name port?
"""
