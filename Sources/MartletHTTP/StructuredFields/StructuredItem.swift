/// An item of a structured field with its parameters (RFC 8941 §3.3).
package struct StructuredItem: Sendable, Equatable {
    package let value: StructuredValue
    package let parameters: StructuredParameters

    /// Appends the serialization (RFC 8941 §4.1.3).
    package func append(to output: inout [UInt8]) {
        value.append(to: &output)
        parameters.append(to: &output)
    }
}

/// A list of items in parentheses, with parameters of its own (RFC 8941 §3.1.1).
package struct StructuredInnerList: Sendable, Equatable {
    package let items: [StructuredItem]
    package let parameters: StructuredParameters

    /// Appends the serialization (RFC 8941 §4.1.1.1).
    package func append(to output: inout [UInt8]) {
        output.append(UInt8(ascii: "("))
        for (index, item) in items.enumerated() {
            if index > 0 { output.append(UInt8(ascii: " ")) }
            item.append(to: &output)
        }
        output.append(UInt8(ascii: ")"))
        parameters.append(to: &output)
    }
}

/// What a list or a dictionary consists of.
package enum StructuredMember: Sendable, Equatable {
    case item(StructuredItem)
    case innerList(StructuredInnerList)

    /// The item, if this is one.
    package var item: StructuredItem? { if case .item(let item) = self { item } else { nil } }

    /// The inner list, if this is one.
    package var innerList: StructuredInnerList? {
        if case .innerList(let list) = self { list } else { nil }
    }

    /// Appends the serialization.
    package func append(to output: inout [UInt8]) {
        switch self {
        case .item(let item): item.append(to: &output)
        case .innerList(let list): list.append(to: &output)
        }
    }
}
