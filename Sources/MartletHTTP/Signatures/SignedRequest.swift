/// A request as signatures describe it (RFC 9421 §2): what the client sent, before any rewriting.
package struct SignedRequest: Sendable {
    /// One field line.
    package struct Field: Sendable {
        /// In lower case.
        package let name: String
        package let value: [UInt8]

        package init(name: String, value: [UInt8]) {
            self.name = name
            self.value = value
        }
    }

    package var method: [UInt8]
    /// `http` or `https`.
    package var scheme: [UInt8]
    /// The value of `Host` or `:authority`.
    package var authority: [UInt8]
    package var path: [UInt8]
    /// Without the question mark; `nil` if the target has none.
    package var query: [UInt8]?
    /// In their order.
    package var fields: [Field]

    package init(
        method: [UInt8], scheme: [UInt8], authority: [UInt8], path: [UInt8], query: [UInt8]?, fields: [Field]
    ) {
        self.method = method
        self.scheme = scheme
        self.authority = authority
        self.path = path
        self.query = query
        self.fields = fields
    }

    /// The value of a component as the signature base has it; not checked for line breaks.
    /// - Throws: `signature.component_missing` or `signature.component_malformed`.
    func value(of source: SignatureComponent.Source) throws(MessageSignatureError) -> [UInt8] {
        switch source {
        case .method: return method
        case .authority: return normalizedAuthority
        case .scheme: return scheme.map(ASCII.lowered)
        case .targetURI: return scheme.map(ASCII.lowered) + "://".utf8 + normalizedAuthority + target
        case .requestTarget: return target
        case .path: return normalizedPath
        case .query: return [UInt8(ascii: "?")] + (query ?? [])
        case .queryParameter(let name):
            guard let value = QueryParameters.only(name, of: query ?? []) else {
                throw MessageSignatureError(.signatureComponentMissing, "a query parameter is not there exactly once")
            }
            return value
        case .field(let name): return Array(try values(of: name).joined(separator: ", ".utf8))
        case .wrappedField(let name):
            return Array(
                try values(of: name).map { value in
                    var output: [UInt8] = []
                    StructuredValue.bytes(value).append(to: &output)
                    return output
                }.joined(separator: ", ".utf8))
        case .fieldMember(let name, let key): return try member(key, of: name)
        }
    }

    /// In origin form (RFC 9112 §3.2.1), whichever form the client used.
    private var target: [UInt8] { normalizedPath + (query.map { [UInt8(ascii: "?")] + $0 } ?? []) }

    /// RFC 9110 §4.2.3.
    private var normalizedPath: [UInt8] { path.isEmpty ? [UInt8(ascii: "/")] : path }

    /// In lower case and without the default port (RFC 9421 §2.2.3).
    private var normalizedAuthority: [UInt8] {
        let authority = authority.map(ASCII.lowered)
        let isSecure = scheme.map(ASCII.lowered).elementsEqual("https".utf8)
        for suffix in [isSecure ? ":443" : ":80", ":"] {
            let length = suffix.utf8.count
            if authority.count > length, authority.suffix(length).elementsEqual(suffix.utf8) {
                return authority.dropLast(length)
            }
        }
        return authority
    }

    /// The values of all fields of a name, without the white space around them.
    private func values(of name: String) throws(MessageSignatureError) -> [[UInt8]] {
        let found = fields.filter { $0.name == name }.map { field in
            var value = field.value[...]
            while let last = value.last, ASCII.isBlank(last) { value.removeLast() }
            return Array(value.drop(while: ASCII.isBlank))
        }
        guard !found.isEmpty else {
            throw MessageSignatureError(.signatureComponentMissing, "the request has no field '\(name)'")
        }
        return found
    }

    /// RFC 9421 §2.1.2.
    private func member(_ key: String, of name: String) throws(MessageSignatureError) -> [UInt8] {
        let entries: [StructuredField.Entry]
        let combined = Array(try values(of: name).joined(separator: ", ".utf8))
        do throws(StructuredFieldError) { entries = try StructuredField.dictionary(combined) } catch {
            throw MessageSignatureError(.signatureComponentMalformed, "the field '\(name)' is not a dictionary")
        }
        guard let entry = entries.first(where: { $0.key == key }) else {
            throw MessageSignatureError(.signatureComponentMissing, "the field '\(name)' does not have the member")
        }
        var output: [UInt8] = []
        entry.member.append(to: &output)
        return output
    }
}

/// The parameters of a query, as `application/x-www-form-urlencoded` has them (RFC 9421 §2.2.8).
private enum QueryParameters {
    /// The value of the only parameter with this name; both are percent-encoded in the one way that signatures use.
    static func only(_ name: String, of query: [UInt8]) -> [UInt8]? {
        var found: [UInt8]?
        for pair in query.split(separator: UInt8(ascii: "&")) {
            let end = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            guard encoded(decoded(pair[..<end])).elementsEqual(name.utf8) else { continue }
            guard found == nil else { return nil }
            found = encoded(decoded(pair[end...].dropFirst()))
        }
        return found
    }

    private static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let high = rest.first.flatMap(ASCII.hexValue),
                let low = rest.dropFirst().first.flatMap(ASCII.hexValue)
            {
                output.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                output.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return output
    }

    /// Encodes all but letters, digits and `*-._`; a space becomes `%20`.
    private static func encoded(_ bytes: [UInt8]) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return bytes.flatMap { byte -> [UInt8] in
            if ASCII.isDigit(byte) || ASCII.isLetter(byte) || "*-._".utf8.contains(byte) { return [byte] }
            return [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
}
