/// Encodes form fields, with `%20` for a space.
func encodeForm(_ fields: [(name: String, value: String)]) -> [UInt8] {
    var text: [UInt8] = []
    for (index, field) in fields.enumerated() {
        if index > 0 { text.append(0x26) }
        appendEncoded(field.name, to: &text)
        text.append(0x3D)
        appendEncoded(field.value, to: &text)
    }
    return text
}

private func appendEncoded(_ value: String, to text: inout [UInt8]) {
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in value.utf8 {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: text.append(byte)
        default: text += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
}
