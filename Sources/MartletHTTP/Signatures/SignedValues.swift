internal import MartletCore

/// The values of a request's parts as one signature covers them (RFC 9421 §2).
///
/// Anyone can ask for this work, with no more than the name of a key: each part is parsed once, however many components
/// refer to it.
struct SignedValues {
    private let request: SignedRequest
    /// The covered query parameters.
    private let parameters: QueryParameters
    /// The members of the fields that were parsed so far.
    private var dictionaries: [String: [String: StructuredMember]] = [:]

    init(of request: SignedRequest, for components: [SignatureComponent]) {
        self.request = request
        var names: [[UInt8]] = []
        for component in components {
            if case .queryParameter(let name) = component.source { names.append(Array(name.utf8)) }
        }
        parameters = QueryParameters(names, of: request.query ?? [])
    }

    /// Appends the value of a component as the signature base has it; not checked for line breaks.
    /// - Throws: `signature.component_missing` or `signature.component_malformed`.
    mutating func append(
        _ source: SignatureComponent.Source, to output: inout [UInt8]
    ) throws(MessageSignatureError) {
        switch source {
        case .method: output += request.method
        case .authority: appendAuthority(to: &output)
        case .scheme: output += request.scheme.lazy.map(ASCII.lowered)
        case .targetURI:
            output += request.scheme.lazy.map(ASCII.lowered)
            output += "://".utf8
            appendAuthority(to: &output)
            appendTarget(to: &output)
        case .requestTarget: appendTarget(to: &output)
        case .path: appendPath(to: &output)
        case .query:
            output.append(UInt8(ascii: "?"))
            output += request.query ?? []
        case .queryParameter(let name):
            guard let value = parameters.only(Array(name.utf8)) else {
                throw MessageSignatureError(.signatureComponentMissing, "a query parameter is not there exactly once")
            }
            output += value
        case .field(let name): try appendField(name, to: &output) { $1 += $0 }
        case .wrappedField(let name):
            try appendField(name, to: &output) { StructuredValue.bytes(Array($0)).append(to: &$1) }
        case .fieldMember(let name, let key): try appendMember(key, of: name, to: &output)
        }
    }

    /// In origin form (RFC 9112 §3.2.1), whichever form the client used.
    private func appendTarget(to output: inout [UInt8]) {
        appendPath(to: &output)
        guard let query = request.query else { return }
        output.append(UInt8(ascii: "?"))
        output += query
    }

    /// RFC 9110 §4.2.3.
    private func appendPath(to output: inout [UInt8]) {
        if request.path.isEmpty { output.append(UInt8(ascii: "/")) } else { output += request.path }
    }

    /// In lower case and without the default port (RFC 9421 §2.2.3).
    private func appendAuthority(to output: inout [UInt8]) {
        let start = output.count
        output += request.authority.lazy.map(ASCII.lowered)
        let isSecure = request.scheme.count == 5 && request.scheme.lazy.map(ASCII.lowered).elementsEqual("https".utf8)
        if !Self.remove(isSecure ? ":443" : ":80", from: &output, after: start) {
            _ = Self.remove(":", from: &output, after: start)
        }
    }

    /// Removes the end of a text, unless it is all of it.
    private static func remove(_ end: String, from output: inout [UInt8], after start: Int) -> Bool {
        let length = end.utf8.count
        guard output.count - start > length, output.suffix(length).elementsEqual(end.utf8) else { return false }
        output.removeLast(length)
        return true
    }

    /// Appends the values of all fields of a name, each without the white space around it.
    private func appendField(
        _ name: String, to output: inout [UInt8], _ append: (ArraySlice<UInt8>, inout [UInt8]) -> Void
    ) throws(MessageSignatureError) {
        var isFirst = true
        for field in request.fields where field.name == name {
            if !isFirst { output += ", ".utf8 }
            isFirst = false
            var value = field.value.drop(while: ASCII.isBlank)
            while let last = value.last, ASCII.isBlank(last) { value.removeLast() }
            append(value, &output)
        }
        guard !isFirst else {
            throw MessageSignatureError(.signatureComponentMissing, "the request has no field '\(name)'")
        }
    }

    /// RFC 9421 §2.1.2.
    private mutating func appendMember(
        _ key: String, of name: String, to output: inout [UInt8]
    ) throws(MessageSignatureError) {
        if dictionaries[name] == nil { dictionaries[name] = try parse(name) }
        guard let member = dictionaries[name]?[key] else {
            throw MessageSignatureError(.signatureComponentMissing, "the field '\(name)' does not have the member")
        }
        member.append(to: &output)
    }

    private func parse(_ name: String) throws(MessageSignatureError) -> [String: StructuredMember] {
        var value: [UInt8] = []
        try appendField(name, to: &value) { $1 += $0 }
        do throws(StructuredFieldError) {
            var members: [String: StructuredMember] = [:]
            for entry in try StructuredField.dictionary(value) { members[entry.key] = entry.member }
            return members
        } catch {
            throw MessageSignatureError(.signatureComponentMalformed, "the field '\(name)' is not a dictionary")
        }
    }
}

/// Some parameters of a query, as `application/x-www-form-urlencoded` has them (RFC 9421 §2.2.8).
///
/// Names and values are percent-encoded in the one way that signatures use.
private struct QueryParameters {
    private enum Occurrence {
        case absent
        case once([UInt8])
        case several
    }

    private var found: [[UInt8]: Occurrence] = [:]

    /// Reads a query once.
    /// - Parameter names: the parameters to look for.
    init(_ names: [[UInt8]], of query: [UInt8]) {
        guard !names.isEmpty else { return }
        var longest = 0
        for name in names {
            found[name] = .absent
            longest = max(longest, name.count)
        }
        var name: [UInt8] = []
        for pair in query.split(separator: UInt8(ascii: "&")) {
            let end = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            // Three bytes make at least one of the encoded form.
            guard end - pair.startIndex <= 3 * longest else { continue }
            name.removeAll(keepingCapacity: true)
            Self.encode(pair[..<end], into: &name)
            switch found[name] {
            case nil: break
            case .absent:
                var value: [UInt8] = []
                Self.encode(pair[end...].dropFirst(), into: &value)
                found[name] = .once(value)
            case .once, .several: found[name] = .several
            }
        }
    }

    /// The value of a parameter that is there exactly once.
    func only(_ name: [UInt8]) -> [UInt8]? {
        guard case .once(let value) = found[name] else { return nil }
        return value
    }

    /// Decodes a name or value, and encodes all but letters, digits and `*-._` again; a space becomes `%20`.
    private static func encode(_ text: ArraySlice<UInt8>, into output: inout [UInt8]) {
        var index = text.startIndex
        while index < text.endIndex {
            var byte = text[index]
            index += 1
            if byte == UInt8(ascii: "%"), text.endIndex - index >= 2, let high = ASCII.hexValue(text[index]),
                let low = ASCII.hexValue(text[index + 1])
            {
                byte = high << 4 | low
                index += 2
            } else if byte == UInt8(ascii: "+") {
                byte = UInt8(ascii: " ")
            }
            if isKept(byte) {
                output.append(byte)
            } else {
                output.append(UInt8(ascii: "%"))
                output.append(digit(byte >> 4))
                output.append(digit(byte & 15))
            }
        }
    }

    private static func isKept(_ byte: UInt8) -> Bool {
        if ASCII.isDigit(byte) || ASCII.isLetter(byte) { return true }
        switch byte {
        case UInt8(ascii: "*"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): return true
        default: return false
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x41 + (value - 10) }
}
