"""Bad values as upstream's internal types print them in messages.

Job: an object → the same with Go's own field names, in their order, and with what nobody has set:
    types without JSON names are printed that way. Pure.
Invariant: only messages have this form; nothing is ever decided by it.
"""

from typing import Any

from sampan.api.objects import Obj

# A field is `GoName`, `GoName=zero` (null where there is none), `GoName:Type`, or `GoName<key`
# where the key is not the name with a small letter; zeros are JSON words, `{}` a type's own zeros.
_TYPES = {
    "AppArmorProfile": 'Type="" LocalhostProfile',
    "CELDeviceSelector": 'Expression=""',
    "CSINodeDriver": 'Name="" NodeID="" TopologyKeys Allocatable:VolumeNodeResources',
    "Capabilities": "Add Drop",
    "DaemonSetUpdateStrategy": 'Type="" RollingUpdate:RollingUpdateDaemonSet',
    "DeploymentStrategy": 'Type="" RollingUpdate:RollingUpdateDeployment',
    "DeviceClaim": "Requests:DeviceRequest Constraints:DeviceConstraint "
    "Config:DeviceClaimConfiguration",
    "DeviceClaimConfiguration": "Requests Opaque:OpaqueDeviceConfiguration",
    "DeviceConstraint": "Requests MatchAttribute DistinctAttribute",
    "DeviceRequest": 'Name="" Exactly:ExactDeviceRequest FirstAvailable:DeviceSubRequest',
    "DeviceSelector": "CEL<cel:CELDeviceSelector",
    "DeviceSubRequest": 'Name="" DeviceClassName="" Selectors:DeviceSelector AllocationMode="" '
    "Count=0 Tolerations Capacity",
    "EventSource": 'Component="" Host=""',
    "ExactDeviceRequest": 'DeviceClassName="" Selectors:DeviceSelector AllocationMode="" Count=0 '
    "AdminAccess Tolerations Capacity",
    "FlowDistinguisherMethod": 'Type=""',
    "FlowSchemaSpec": "PriorityLevelConfiguration:PriorityLevelConfigurationReference "
    "MatchingPrecedence=0 DistinguisherMethod:FlowDistinguisherMethod "
    "Rules:PolicyRulesWithSubjects",
    "GroupResource": 'group="" resource=""',
    "GroupSubject": 'Name=""',
    "LimitResponse": 'Type="" Queuing:QueuingConfiguration',
    "LimitedPriorityLevelConfiguration": "NominalConcurrencyShares=0 LimitResponse:LimitResponse "
    "LendablePercent BorrowingLimitPercent",
    "NonResourcePolicyRule": "Verbs NonResourceURLs<nonResourceURLs",
    "NonResourceAttributes": 'Path="" Verb=""',
    "ObjectReference": 'Kind="" Namespace="" Name="" UID<uid="" APIVersion<apiVersion="" '
    'ResourceVersion="" FieldPath=""',
    "OpaqueDeviceConfiguration": 'Driver="" Parameters',
    "ParentReference": 'Group="" Resource="" Namespace="" Name=""',
    "PolicyRulesWithSubjects": "Subjects:Subject ResourceRules:ResourcePolicyRule "
    "NonResourceRules:NonResourcePolicyRule",
    "PodDisruptionBudgetSpec": "MinAvailable Selector MaxUnavailable UnhealthyPodEvictionPolicy",
    "PodCertificateRequestSpec": 'SignerName="" PodName="" PodUID="" ServiceAccountName="" '
    'ServiceAccountUID="" NodeName="" NodeUID="" MaxExpirationSeconds PKIXPublicKey<pkixPublicKey '
    "ProofOfPossession StubPKCS10Request UnverifiedUserAnnotations",
    "PodResourceClaim": 'Name="" ResourceClaimName ResourceClaimTemplateName',
    "PriorityLevelConfigurationSpec": 'Type="" Limited:LimitedPriorityLevelConfiguration '
    "Exempt:ExemptPriorityLevelConfiguration",
    "ExemptPriorityLevelConfiguration": "NominalConcurrencyShares LendablePercent",
    "PriorityLevelConfigurationReference": 'Name=""',
    "QueuingConfiguration": "Queues=0 HandSize=0 QueueLengthLimit=0",
    "ResourceClaimSpec": "Devices:DeviceClaim={}",
    "ResourcePolicyRule": "Verbs APIGroups<apiGroups Resources ClusterScope=false Namespaces",
    "RoleRef": 'APIGroup<apiGroup="" Kind="" Name=""',
    "RollingUpdateDaemonSet": "MaxUnavailable=0 MaxSurge=0",
    "RollingUpdateDeployment": "MaxUnavailable=0 MaxSurge=0",
    "RollingUpdateStatefulSetStrategy": "Partition=0 MaxUnavailable",
    "SELinuxOptions": 'User="" Role="" Type="" Level=""',
    "SeccompProfile": 'Type="" LocalhostProfile',
    "SecurityContext": "Capabilities:Capabilities Privileged "
    "SELinuxOptions<seLinuxOptions:SELinuxOptions "
    "WindowsOptions:WindowsSecurityContextOptions RunAsUser RunAsGroup RunAsNonRoot "
    "ReadOnlyRootFilesystem AllowPrivilegeEscalation ProcMount SeccompProfile:SeccompProfile "
    "AppArmorProfile:AppArmorProfile",
    "ServiceAccountSubject": 'Namespace="" Name=""',
    "ServiceCIDRSpec": "CIDRs<cidrs",
    "ServicePort": 'Name="" Protocol="" AppProtocol Port=0 TargetPort=0 NodePort=0',
    "StorageVersionMigrationSpec": "Resource:GroupResource={}",
    "StatefulSetUpdateStrategy": 'Type="" RollingUpdate:RollingUpdateStatefulSetStrategy',
    "Subject": 'Kind="" User:UserSubject Group:GroupSubject ServiceAccount:ServiceAccountSubject',
    "SuccessPolicy": "Rules=[]",
    "Taint": 'Key="" Value="" Effect="" TimeAdded',
    "Toleration": 'Key="" Operator="" Value="" Effect="" TolerationSeconds',
    "UserSubject": 'Name=""',
    "WindowsSecurityContextOptions": "GMSACredentialSpecName<gmsaCredentialSpecName "
    "GMSACredentialSpec<gmsaCredentialSpec RunAsUserName HostProcess",
    "VolumeNodeResources": "Count",
}
_ZEROS = {'""': "", "0": 0, "false": False, "[]": [], "": None}


def internal_form(kind: str, value: Any) -> Any:
    if isinstance(value, list):
        return [internal_form(kind, item) for item in value]
    if value is None:
        return None
    shown: Obj = {}
    for field in _TYPES[kind].split():
        head, _, zero = field.partition("=")
        head, _, inner = head.partition(":")
        name, _, key = head.partition("<")
        found = value.get(key or name[0].lower() + name[1:])
        if found is None and zero == "{}":
            found = {}
        shown[name] = internal_form(inner, found) if inner else found
        if shown[name] is None:
            shown[name] = _ZEROS[zero]
    return shown
