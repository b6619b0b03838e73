//! JSON patches as the server's library applies them, which is not always what RFC 6902 says: a test
//! of a missing path against null succeeds, replacing a missing member adds it, and the first part
//! of a path counts as empty whatever it is.

use serde_json::Value;

use crate::status::Status;

/// Applies a patch, or nothing of it.
///
/// # Errors
///
/// 400 for what is no list of operations, 413 for too many, 422 if one cannot be applied.
pub(super) fn apply(value: &mut Value, patch: &Value, max_operations: usize) -> Result<(), Status> {
    let Some(operations) = patch.as_array() else {
        return Err(Status::bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type \
             []handlers.jsonPatchOp",
        ));
    };
    if operations.len() > max_operations {
        return Err(Status::too_large(&format!(
            "The allowed maximum operations in a JSON patch is {max_operations}, got {}",
            operations.len()
        )));
    }
    let mut patched = value.clone();
    for operation in operations {
        // The recorded server says neither which operation failed nor why.
        apply_one(&mut patched, operation).ok_or_else(Status::rejected)?;
    }
    *value = patched;
    Ok(())
}

fn apply_one(root: &mut Value, operation: &Value) -> Option<()> {
    let path = parts(operation["path"].as_str()?);
    let from = || operation["from"].as_str().map(parts);
    match operation["op"].as_str()? {
        "add" => add(
            root,
            &path,
            operation.get("value").cloned().unwrap_or_default(),
        ),
        "remove" => remove(root, &path).map(|_| ()),
        "replace" => replace(
            root,
            &path,
            operation.get("value").cloned().unwrap_or_default(),
        ),
        "move" => {
            let value = remove(root, &from()?)?;
            add(root, &path, value)
        }
        "copy" => {
            let from = from()?;
            // A member that is missing is copied as null, one of what is missing is not.
            let value = match find(root, &from) {
                Some(value) => value.clone(),
                None => find(root, from.split_last()?.1)?
                    .is_object()
                    .then_some(Value::Null)?,
            };
            add(root, &path, value)
        }
        "test" => {
            let expected = operation.get("value").unwrap_or(&Value::Null);
            let found = find(root, &path).unwrap_or(&Value::Null);
            (found == expected).then_some(())
        }
        _ => None,
    }
}

/// The parts of a pointer; what stands before the first slash is dropped.
fn parts(pointer: &str) -> Vec<String> {
    pointer
        .split('/')
        .skip(1)
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect()
}

fn find<'a>(root: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter()
        .try_fold(root, |value, part| match value.as_array() {
            Some(list) => list.get(index(part, list.len())?),
            None => value.get(part),
        })
}

fn find_mut<'a>(root: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(root, |value, part| {
        if value.is_array() {
            let list = value.as_array_mut()?;
            let place = index(part, list.len())?;
            return list.get_mut(place);
        }
        value.as_object_mut()?.get_mut(part)
    })
}

/// An index into a list; a negative one counts from the end.
fn index(part: &str, length: usize) -> Option<usize> {
    if let Some(back) = part.strip_prefix('-') {
        return length.checked_sub(back.parse().ok()?);
    }
    part.parse().ok()
}

fn add(root: &mut Value, path: &[String], value: Value) -> Option<()> {
    let Some((last, parents)) = path.split_last() else {
        *root = value;
        return Some(());
    };
    let parent = find_mut(root, parents)?;
    if let Some(list) = parent.as_array_mut() {
        let place = if last == "-" {
            list.len()
        } else {
            index(last, list.len())?
        };
        if place > list.len() {
            return None;
        }
        list.insert(place, value);
    } else {
        parent.as_object_mut()?.insert(last.clone(), value);
    }
    Some(())
}

fn remove(root: &mut Value, path: &[String]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let parent = find_mut(root, parents)?;
    if let Some(list) = parent.as_array_mut() {
        let place = index(last, list.len())?;
        return (place < list.len()).then(|| list.remove(place));
    }
    parent.as_object_mut()?.remove(last)
}

fn replace(root: &mut Value, path: &[String], value: Value) -> Option<()> {
    let Some((last, parents)) = path.split_last() else {
        *root = value;
        return Some(());
    };
    let parent = find_mut(root, parents)?;
    if let Some(list) = parent.as_array_mut() {
        let place = index(last, list.len())?;
        *list.get_mut(place)? = value;
    } else {
        parent.as_object_mut()?.insert(last.clone(), value);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: &Value, patch: &Value, after: Option<Value>) {
        let mut value = before.clone();
        let outcome = apply(&mut value, patch, 100);
        let code = outcome.map_err(|status| status.code);
        assert_eq!(code, if after.is_some() { Ok(()) } else { Err(422) });
        // A patch that fails changes nothing.
        assert_eq!(value, after.unwrap_or_else(|| before.clone()));
    }

    #[test]
    fn operations() {
        let before = json!({ "a": { "b": 1 }, "l": [1, 2] });
        let cases = [
            (
                json!([{ "op": "test", "path": "/x", "value": null }]),
                Some(before.clone()),
            ),
            (
                json!([{ "op": "test", "path": "/x/y", "value": null }]),
                Some(before.clone()),
            ),
            (json!([{ "op": "test", "path": "/a/b", "value": 2 }]), None),
            (
                json!([{ "op": "add", "path": "/l/1", "value": 9 }]),
                Some(json!({ "a": { "b": 1 }, "l": [1, 9, 2] })),
            ),
            (
                json!([{ "op": "replace", "path": "/a/new", "value": 9 }]),
                Some(json!({ "a": { "b": 1, "new": 9 }, "l": [1, 2] })),
            ),
            (
                json!([{ "op": "move", "from": "/a/b", "path": "/l/-" }]),
                Some(json!({ "a": {}, "l": [1, 2, 1] })),
            ),
            (
                json!([{ "op": "remove", "path": "/l/0" }, { "op": "remove", "path": "/z" }]),
                None,
            ),
            (json!([{ "op": "add", "path": "/l/5", "value": 1 }]), None),
        ];
        for (patch, after) in cases {
            check(&before, &patch, after);
        }
    }
}
