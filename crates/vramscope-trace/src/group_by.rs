//! Groups items by key.

/// Groups items by key: ascending keys, and a group's items in their order.
pub fn group_by_key<K: Ord, T>(mut items: Vec<(K, T)>) -> Vec<(K, Vec<T>)> {
    items.sort_by(|a, b| a.0.cmp(&b.0));
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, item) in items {
        match groups.last_mut().filter(|group| group.0 == key) {
            Some(group) => group.1.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_ascend_and_items_keep_their_order() {
        let groups = group_by_key(vec![(2, 'a'), (1, 'b'), (2, 'c')]);
        assert_eq!(groups, [(1, vec!['b']), (2, vec!['a', 'c'])]);
        assert!(group_by_key(Vec::<(u8, u8)>::new()).is_empty());
    }
}
