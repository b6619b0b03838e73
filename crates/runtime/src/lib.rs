//! A controller runtime for Kubernetes.
