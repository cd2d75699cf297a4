/// One of the keys of which a block has exactly one, with what the block gets of its value.
struct ConfigurationAlternative<Outcome: Sendable>: Sendable {
    let row: ConfigurationGrammar.Key
    /// Records an invalid value.
    let read: @Sendable (inout ConfigurationReader) -> Outcome?

    init<Value: Spelling>(
        _ name: String, as type: Value.Type, _ outcome: @escaping @Sendable (Value.Content) -> Outcome,
        _ summary: String
    ) {
        row = .optional(name, Value.shape, summary)
        read = { reader in
            reader.value(name) { node throws(ConfigurationError) in outcome(try Value(decoding: node).content) }
        }
    }
}

extension ConfigurationReader {
    /// The only one of several keys that the block has.
    /// - Throws: if there is none or more than one.
    func one<Outcome>(
        of alternatives: [ConfigurationAlternative<Outcome>]
    ) throws(ConfigurationError) -> ConfigurationAlternative<Outcome> {
        let names = alternatives.map(\.row.name)
        let given = keys.filter { names.contains($0.value) }
        guard given.count == 1, let only = alternatives.first(where: { $0.row.name == given[0].value }) else {
            throw ConfigurationError(
                given.isEmpty ? .configMissingKey : .configConflictingKeys,
                at: given.dropFirst().first?.location ?? location,
                "\(title) must have exactly one of \(names.joined(separator: ", "))")
        }
        return only
    }
}
