//! Programs with kube's exact signatures, for `kube::runtime` and for `homeostat::compat`.

use super::runtime;

mod filtered_operator;
mod own_adapters;
