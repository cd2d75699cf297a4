/// The parameters of an item or inner list (RFC 8941 §3.1.2), in their order.
package struct StructuredParameters: Sendable, Equatable {
    /// One parameter.
    package struct Parameter: Sendable, Equatable {
        package let key: String
        package let value: StructuredValue
    }

    package internal(set) var all: [Parameter] = []

    /// The value of a parameter.
    package subscript(key: String) -> StructuredValue? { all.first { $0.key == key }?.value }

    package var isEmpty: Bool { all.isEmpty }

    /// Appends the serialization (RFC 8941 §4.1.1.2): a value of true is left out.
    package func append(to output: inout [UInt8]) {
        for parameter in all {
            output += ";\(parameter.key)".utf8
            guard parameter.value != .boolean(true) else { continue }
            output.append(UInt8(ascii: "="))
            parameter.value.append(to: &output)
        }
    }
}
