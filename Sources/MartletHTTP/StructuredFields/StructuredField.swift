/// Parses structured fields (RFC 8941), strictly: each value has exactly one meaning.
///
/// Stricter than the RFC in two points, because two parsers could otherwise understand a value differently: a key that is
/// given twice is rejected instead of the first being overwritten, and base64 has to be padded, without loose bits. Dates
/// and display strings, which RFC 9651 added, are in no field that the gateway reads, and are rejected.
package enum StructuredField {
    /// The maximum length of a value in bytes.
    package static let maximumBytes = 32 * 1024
    /// The maximum members of a list or dictionary, and items of an inner list.
    package static let maximumMembers = 128
    /// The maximum parameters of one item or inner list.
    package static let maximumParameters = 32

    /// A member of a dictionary.
    package struct Entry: Sendable, Equatable {
        package let key: String
        package let member: StructuredMember
    }

    /// Parses an item (RFC 8941 §4.2.3).
    /// - Parameter value: of the field; several lines are joined with commas, which no item has.
    package static func item(_ value: [UInt8]) throws(StructuredFieldError) -> StructuredItem {
        var parser = try StructuredFieldParser(value)
        let item = try parser.item()
        try parser.end()
        return item
    }

    /// Parses a list (RFC 8941 §4.2.1); an empty value is an empty list.
    package static func list(_ value: [UInt8]) throws(StructuredFieldError) -> [StructuredMember] {
        var parser = try StructuredFieldParser(value)
        var members: [StructuredMember] = []
        while try parser.hasMember(after: members.count) { members.append(try parser.member()) }
        return members
    }

    /// Parses a dictionary (RFC 8941 §4.2.2), in its order; an empty value is an empty dictionary.
    /// - Parameter maximumItems: of an inner list.
    package static func dictionary(
        _ value: [UInt8], maximumItems: Int = maximumMembers
    ) throws(StructuredFieldError) -> [Entry] {
        var parser = try StructuredFieldParser(value, maximumItems: maximumItems)
        var entries: [Entry] = []
        var keys: Set<String> = []
        while try parser.hasMember(after: entries.count) {
            let key = try parser.key { !keys.insert($0).inserted }
            entries.append(Entry(key: key, member: try parser.dictionaryMember()))
        }
        return entries
    }

    /// The serialization of a dictionary (RFC 8941 §4.1.2).
    package static func serialized(_ entries: [Entry]) -> [UInt8] {
        var output: [UInt8] = []
        for (index, entry) in entries.enumerated() {
            output += "\(index > 0 ? ", " : "")\(entry.key)".utf8
            if case .item(let item) = entry.member, item.value == .boolean(true) {
                item.parameters.append(to: &output)
            } else {
                output.append(UInt8(ascii: "="))
                entry.member.append(to: &output)
            }
        }
        return output
    }

    /// The serialization of a list (RFC 8941 §4.1.1).
    package static func serialized(_ members: [StructuredMember]) -> [UInt8] {
        var output: [UInt8] = []
        for (index, member) in members.enumerated() {
            if index > 0 { output += ", ".utf8 }
            member.append(to: &output)
        }
        return output
    }
}
