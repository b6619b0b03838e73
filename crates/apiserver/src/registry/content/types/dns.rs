//! How a pod finds names.

use serde_json::{Value, json};

use super::super::field::Field;
use crate::object;
use crate::registry::{addresses, forms};
use crate::status::Cause;

const MAX_SERVERS: usize = 3;

const MAX_SEARCHES: usize = 32;

/// How many bytes all search domains with a space between may have.
const MAX_SEARCH_BYTES: usize = 2048;

/// A pod's own configuration.
pub(super) fn config(config: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let place = field.member("nameservers");
    if object::elements(config, "nameservers").count() > MAX_SERVERS {
        let why = format!("must not have more than {MAX_SERVERS} nameservers");
        causes.push(Cause::invalid(place, &config["nameservers"], &why));
    }
    for (index, server) in object::elements(config, "nameservers").enumerate() {
        let problems = addresses::address(server.as_str().unwrap_or_default());
        let cause = |why| Cause::invalid(place.element(index), server, why);
        causes.extend(problems.into_iter().map(cause));
    }
    searches(config, field, causes);
    let place = field.member("options");
    for (index, option) in object::elements(config, "options").enumerate() {
        if option["name"].as_str().is_none_or(str::is_empty) {
            causes.push(Cause::required(place.element(index), "must not be empty"));
        }
    }
}

fn searches(config: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let place = field.member("searches");
    let texts: Vec<&str> = object::elements(config, "searches")
        .map(|domain| domain.as_str().unwrap_or_default())
        .collect();
    if texts.len() > MAX_SEARCHES {
        let why = format!("must not have more than {MAX_SEARCHES} search paths");
        causes.push(Cause::invalid(place, &config["searches"], &why));
    }
    if texts.join(" ").len() > MAX_SEARCH_BYTES {
        let why = format!(
            "must not have more than {MAX_SEARCH_BYTES} characters (including spaces) in the search \
             list"
        );
        causes.push(Cause::invalid(place, &config["searches"], &why));
    }
    for (index, text) in texts.into_iter().enumerate() {
        let domain = text.strip_suffix('.').unwrap_or(text);
        // A dot alone is the root, which is a domain.
        if domain.is_empty() && !text.is_empty() {
            continue;
        }
        let cause = |why| Cause::invalid(place.element(index), &json!(domain), why);
        causes.extend(forms::search_domain(domain).into_iter().map(cause));
    }
}

/// Whoever has no policy has a configuration.
pub(super) fn policy(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    if spec["dnsPolicy"] != "None" {
        return;
    }
    let place = field.member("dnsConfig");
    if spec["dnsConfig"].is_null() {
        let why = "must provide `dnsConfig` when `dnsPolicy` is None";
        causes.push(Cause::required(place, why));
    } else if object::elements(&spec["dnsConfig"], "nameservers")
        .next()
        .is_none()
    {
        let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        causes.push(Cause::required(place.member("nameservers"), why));
    }
}
