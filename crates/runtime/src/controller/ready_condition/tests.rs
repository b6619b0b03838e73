use super::{Ending, Failure, Finding, Rest, concluded, finding, postponed, restored};
use crate::{
    Action, Classify, ErrorClass, controller::Error, reflector::ObjectRef, task::Completion,
};
use k8s_openapi::{
    api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp,
};
use std::{borrow::Cow, time::Duration};

#[derive(Debug, Clone, thiserror::Error)]
#[error("attempt 7 failed")]
struct Of(ErrorClass, Option<&'static str>);

impl Classify for Of {
    fn classify(&self) -> ErrorClass {
        self.0.clone()
    }

    fn reason(&self) -> Option<Cow<'static, str>> {
        self.1.map(Cow::Borrowed)
    }
}

fn object(deleting: bool) -> ConfigMap {
    let mut obj = ConfigMap::default();
    obj.metadata.name = Some("a".into());
    obj.metadata.generation = Some(3);
    obj.metadata.deletion_timestamp = deleting.then_some(Time(Timestamp::UNIX_EPOCH));
    obj
}

fn failed(class: ErrorClass) -> Completion<Result<Action, Of>> {
    Completion::Returned(Err(Of(class, None)))
}

fn returned(action: Action) -> Completion<Result<Action, Of>> {
    Completion::Returned(Ok(action))
}

/// The message of an error is its own, whatever its class.
#[test]
fn what_a_run_tells() {
    let transient = ErrorClass::Transient;
    let throttled = ErrorClass::Throttled { retry_after: None };
    let permanent = ErrorClass::permanent("InvalidSpec");
    let limit = Duration::from_secs(1);
    for (completion, there, going) in [
        (returned(Action::await_change()), "True/Reconciled", "stays"),
        (returned(Action::requeue(limit)), "True/Reconciled", "stays"),
        (
            returned(Action::backoff()),
            "Unknown/BackingOff",
            "Unknown/BackingOff",
        ),
        (returned(Action::soon()), "stays", "stays"),
        (
            failed(transient),
            "Unknown/BackingOff",
            "Unknown/BackingOff",
        ),
        (
            failed(throttled),
            "Unknown/BackingOff",
            "Unknown/BackingOff",
        ),
        (
            Completion::Returned(Err(Of(ErrorClass::Transient, Some("InventoryDown")))),
            "Unknown/InventoryDown",
            "Unknown/InventoryDown",
        ),
        (failed(ErrorClass::Conflict), "stays", "stays"),
        (failed(permanent), "False/InvalidSpec", "False/InvalidSpec"),
        (
            Completion::Panicked("7".into()),
            "Unknown/BackingOff",
            "Unknown/BackingOff",
        ),
        (
            Completion::TimedOut(limit),
            "Unknown/BackingOff",
            "Unknown/BackingOff",
        ),
    ] {
        for (deleting, expected) in [(false, there), (true, going)] {
            let finding = finding(&completion, &object(deleting));
            let told = finding.map_or("stays".to_owned(), |finding| {
                let Finding {
                    status,
                    reason,
                    message,
                    observed_generation,
                } = finding;
                assert_eq!(observed_generation, Some(3));
                let fails = !matches!(
                    completion,
                    Completion::Returned(Ok(_)) | Completion::TimedOut(_)
                );
                assert_eq!(message.contains('7'), fails, "{message}");
                format!("{}/{reason}", status.as_str())
            });
            assert_eq!(told, expected, "{completion:?}");
        }
    }
}

/// A condition that is still to be written makes the object run again, whoever was content to wait.
#[test]
fn what_is_unwritten_is_tried_again() {
    let wait = Action::await_change();
    let floor = Action::backoff().at_least(Duration::from_secs(60));
    let minute = Duration::from_secs(60);
    let poll = Action::requeue(2 * minute);
    for (action, rest, expected) in [
        (&wait, Rest::Nothing, &wait),
        (&wait, Rest::Unwritten, &Action::backoff()),
        (&floor, Rest::Unwritten, &floor),
        (&poll, Rest::Unwritten, &Action::backoff()),
        (&wait, Rest::Later(minute), &Action::requeue(minute)),
        (&floor, Rest::Later(minute), &floor),
        (&poll, Rest::Later(minute), &poll),
    ] {
        assert_eq!(postponed(action.clone(), rest), *expected, "{rest:?}");
    }
    let success = concluded(returned(wait), Rest::Unwritten).expect("it is a success");
    assert_eq!(success, Action::backoff());
    let failure = concluded(failed(ErrorClass::Conflict), Rest::Unwritten);
    assert_eq!(failure.expect_err("it is a failure").rest, Rest::Unwritten);
}

/// The reader of the stream sees what it would see without conditions.
#[test]
fn errors_come_out_as_they_went_in() {
    let object = || Box::new(ObjectRef::from_obj(&object(false)).erase());
    let failed = |completion| {
        let failure: Failure<Of> =
            concluded(completion, Rest::Nothing).expect_err("it is a failure");
        restored(Error::ReconcilerFailed(failure, object()))
    };
    let limit = Duration::from_secs(1);
    let panicked = failed(Completion::Panicked("no".into()));
    assert!(matches!(panicked, Error::ReconcilerPanicked(message, _) if message == "no"));
    let late = failed(Completion::TimedOut(limit));
    assert!(matches!(late, Error::ReconcileTimeout(after, _) if after == limit));
    let error = failed(self::failed(ErrorClass::Conflict));
    assert!(matches!(
        error,
        Error::ReconcilerFailed(Of(ErrorClass::Conflict, None), _)
    ));

    let failure = Failure {
        ending: Ending::<Of>::TimedOut(limit),
        rest: Rest::Nothing,
    };
    assert_eq!(failure.to_string(), "took longer than 1s");
}
