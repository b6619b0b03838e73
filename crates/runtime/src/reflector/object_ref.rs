//! References to objects, by type, namespace and name.

use k8s_openapi::{
    api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Resource,
    api::{ApiResource, DynamicObject},
};
use std::{
    borrow::Cow,
    fmt::{self, Debug, Display},
    hash::{Hash, Hasher},
};

/// What a store and a reference need to know of a type of objects.
///
/// Every [`Resource`] has it.
pub trait Lookup {
    /// What has to be known at run time to tell the kind: `()` for types known at compile time.
    type DynamicType;

    /// The kind, as `Deployment`.
    fn kind(dyntype: &Self::DynamicType) -> Cow<'_, str>;
    /// The API group, as `apps`; empty for the core group.
    fn group(dyntype: &Self::DynamicType) -> Cow<'_, str>;
    /// The version in the group, as `v1`.
    fn version(dyntype: &Self::DynamicType) -> Cow<'_, str>;
    /// Group and version, as `apps/v1`.
    fn api_version(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        let (group, version) = (Self::group(dyntype), Self::version(dyntype));
        if group.is_empty() {
            version
        } else {
            format!("{group}/{version}").into()
        }
    }
    /// The name of the resource in URLs, as `deployments`.
    fn plural(dyntype: &Self::DynamicType) -> Cow<'_, str>;

    /// The object's `metadata.name`.
    fn name(&self) -> Option<Cow<'_, str>>;
    /// The object's `metadata.namespace`.
    fn namespace(&self) -> Option<Cow<'_, str>>;
    /// The object's `metadata.resourceVersion`.
    fn resource_version(&self) -> Option<Cow<'_, str>>;
    /// The object's `metadata.uid`.
    fn uid(&self) -> Option<Cow<'_, str>>;

    /// A reference to this object. An object without a name gets the name "".
    fn to_object_ref(&self, dyntype: Self::DynamicType) -> ObjectRef<Self> {
        ObjectRef {
            dyntype,
            name: self.name().map(Cow::into_owned).unwrap_or_default(),
            namespace: self.namespace().map(Cow::into_owned),
            extra: ObjectRefExtra {
                resource_version: self.resource_version().map(Cow::into_owned),
                uid: self.uid().map(Cow::into_owned),
            },
        }
    }
}

impl<K: Resource> Lookup for K {
    type DynamicType = K::DynamicType;

    fn kind(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dyntype)
    }

    fn group(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dyntype)
    }

    fn version(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dyntype)
    }

    fn plural(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dyntype)
    }

    fn name(&self) -> Option<Cow<'_, str>> {
        self.meta().name.as_deref().map(Cow::Borrowed)
    }

    fn namespace(&self) -> Option<Cow<'_, str>> {
        self.meta().namespace.as_deref().map(Cow::Borrowed)
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        self.meta().resource_version.as_deref().map(Cow::Borrowed)
    }

    fn uid(&self) -> Option<Cow<'_, str>> {
        self.meta().uid.as_deref().map(Cow::Borrowed)
    }
}

/// A typed reference to an object: its type, its namespace and its name.
///
/// Two references are equal when these three are; [`extra`](ObjectRef::extra) does not count.
/// It is shown as `Kind.version.group/name.namespace`.
///
/// ```
/// use homeostat::reflector::ObjectRef;
/// use k8s_openapi::api::apps::v1::Deployment;
///
/// let web = ObjectRef::<Deployment>::new("web").within("shop");
/// assert_eq!(web.to_string(), "Deployment.v1.apps/web.shop");
///
/// let mut object = Deployment::default();
/// object.metadata.name = Some("web".into());
/// object.metadata.namespace = Some("shop".into());
/// assert_eq!(ObjectRef::from_obj(&object), web);
/// ```
#[non_exhaustive]
pub struct ObjectRef<K: Lookup + ?Sized> {
    /// What tells the kind of a dynamic type.
    pub dyntype: K::DynamicType,
    /// The object's name.
    pub name: String,
    /// The object's namespace; `None` for an object of the cluster.
    pub namespace: Option<String>,
    /// What else was known when the reference was made. It takes no part in comparisons.
    pub extra: ObjectRefExtra,
}

/// What was known of an object when a reference to it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectRefExtra {
    /// Its `metadata.resourceVersion`.
    pub resource_version: Option<String>,
    /// Its `metadata.uid`.
    pub uid: Option<String>,
}

// === impl ObjectRef ===

impl<K: Lookup> ObjectRef<K>
where
    K::DynamicType: Default,
{
    /// A reference to an object of the cluster; [`within`](Self::within) puts it into a namespace.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::new_with(name, K::DynamicType::default())
    }

    /// A reference to this object.
    #[must_use]
    pub fn from_obj(obj: &K) -> Self {
        obj.to_object_ref(K::DynamicType::default())
    }
}

impl<K: Lookup> ObjectRef<K> {
    /// A reference to an object of the cluster, of a type known at run time.
    #[must_use]
    pub fn new_with(name: &str, dyntype: K::DynamicType) -> Self {
        Self {
            dyntype,
            name: name.into(),
            namespace: None,
            extra: ObjectRefExtra::default(),
        }
    }

    /// The same name in a namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// A reference to this object, of a type known at run time.
    #[must_use]
    pub fn from_obj_with(obj: &K, dyntype: K::DynamicType) -> Self {
        obj.to_object_ref(dyntype)
    }

    /// The owner that an owner reference names, if it is of this type.
    ///
    /// `namespace` is the namespace of the owned object, which is also its owner's. The version in
    /// `apiVersion` does not count: it may have changed since the reference was written, the
    /// object is the same.
    #[must_use]
    pub fn from_owner_ref(
        namespace: Option<&str>,
        owner: &OwnerReference,
        dyntype: K::DynamicType,
    ) -> Option<Self> {
        names_kind::<K>(owner, &dyntype).then(|| Self {
            dyntype,
            name: owner.name.clone(),
            namespace: namespace.map(Into::into),
            extra: ObjectRefExtra {
                resource_version: None,
                uid: Some(owner.uid.clone()),
            },
        })
    }

    /// The same namespace and name as a reference to another type; nobody checks that it exists.
    #[must_use]
    pub fn into_kind_unchecked<K2: Lookup>(self, dyntype: K2::DynamicType) -> ObjectRef<K2> {
        ObjectRef {
            dyntype,
            name: self.name,
            namespace: self.namespace,
            extra: self.extra,
        }
    }

    /// The same reference with its type told at run time.
    #[must_use]
    pub fn erase(self) -> ObjectRef<DynamicObject> {
        ObjectRef {
            dyntype: ApiResource {
                group: K::group(&self.dyntype).into_owned(),
                version: K::version(&self.dyntype).into_owned(),
                api_version: K::api_version(&self.dyntype).into_owned(),
                kind: K::kind(&self.dyntype).into_owned(),
                plural: K::plural(&self.dyntype).into_owned(),
            },
            name: self.name,
            namespace: self.namespace,
            extra: self.extra,
        }
    }
}

/// Whether an owner reference names an object of kind `K`, in whatever version.
pub(crate) fn names_kind<K: Lookup>(owner: &OwnerReference, dyntype: &K::DynamicType) -> bool {
    let group = owner
        .api_version
        .rsplit_once('/')
        .map_or("", |(group, _version)| group);
    owner.kind == K::kind(dyntype) && group == K::group(dyntype)
}

impl<K: Lookup + ?Sized> Clone for ObjectRef<K>
where
    K::DynamicType: Clone,
{
    fn clone(&self) -> Self {
        Self {
            dyntype: self.dyntype.clone(),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            extra: self.extra.clone(),
        }
    }
}

impl<K: Lookup + ?Sized> PartialEq for ObjectRef<K>
where
    K::DynamicType: PartialEq,
{
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.namespace == other.namespace
            && self.dyntype == other.dyntype
    }
}

impl<K: Lookup + ?Sized> Eq for ObjectRef<K> where K::DynamicType: Eq {}

impl<K: Lookup + ?Sized> Hash for ObjectRef<K>
where
    K::DynamicType: Hash,
{
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.dyntype.hash(state);
        self.name.hash(state);
        self.namespace.hash(state);
    }
}

impl<K: Lookup + ?Sized> Debug for ObjectRef<K>
where
    K::DynamicType: Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectRef")
            .field("dyntype", &self.dyntype)
            .field("name", &self.name)
            .field("namespace", &self.namespace)
            .field("extra", &self.extra)
            .finish()
    }
}

impl<K: Lookup + ?Sized> Display for ObjectRef<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dyntype, name, .. } = self;
        let (kind, version, group) = (K::kind(dyntype), K::version(dyntype), K::group(dyntype));
        write!(f, "{kind}.{version}.{group}/{name}")?;
        match &self.namespace {
            Some(namespace) => write!(f, ".{namespace}"),
            None => Ok(()),
        }
    }
}

impl<K: Lookup> From<&K> for ObjectRef<K>
where
    K::DynamicType: Default,
{
    fn from(obj: &K) -> Self {
        Self::from_obj(obj)
    }
}

impl<K: Lookup> From<ObjectRef<K>> for ObjectReference {
    fn from(reference: ObjectRef<K>) -> Self {
        let ObjectRef {
            dyntype,
            name,
            namespace,
            extra:
                ObjectRefExtra {
                    resource_version,
                    uid,
                },
        } = reference;
        Self {
            api_version: Some(K::api_version(&dyntype).into_owned()),
            kind: Some(K::kind(&dyntype).into_owned()),
            name: Some(name),
            namespace,
            resource_version,
            uid,
            field_path: None,
        }
    }
}
