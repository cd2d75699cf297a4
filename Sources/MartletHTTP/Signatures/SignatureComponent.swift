/// A covered component of a request (RFC 9421 §2).
package struct SignatureComponent: Sendable, Equatable {
    /// Where its value comes from.
    enum Source: Sendable, Equatable {
        case method, authority, scheme, targetURI, requestTarget, path, query
        /// The only query parameter of this name, which is percent-encoded.
        case queryParameter(String)
        /// All fields of this name.
        case field(String)
        /// The same, as byte sequences: the parameter `bs` (RFC 9421 §2.1.3).
        case wrappedField(String)
        /// A member of the dictionary in all fields of this name: the parameter `key` (RFC 9421 §2.1.2).
        case fieldMember(String, key: String)
    }

    let source: Source

    /// A component without parameters, as a configuration names it: `@method`, `content-type`.
    /// - Throws: like a component of a signature.
    package init(named name: String) throws(MessageSignatureError) {
        try self.init(StructuredItem(value: .string(name), parameters: StructuredParameters()))
    }

    /// - Throws: `signature.bad_component`, `signature.unknown_component`, `signature.component_not_allowed` or
    ///   `signature.unsupported_component`.
    init(_ item: StructuredItem) throws(MessageSignatureError) {
        guard let name = item.value.string else {
            throw MessageSignatureError(.signatureBadComponent, "a component is not a string")
        }
        source =
            try name.utf8.first == UInt8(ascii: "@")
            ? Self.derived(name, item.parameters) : Self.field(name, item.parameters)
    }

    /// Appends the serialized identifier, with its parameter.
    func appendIdentifier(to output: inout [UInt8]) {
        switch source {
        case .method: output += "\"@method\"".utf8
        case .authority: output += "\"@authority\"".utf8
        case .scheme: output += "\"@scheme\"".utf8
        case .targetURI: output += "\"@target-uri\"".utf8
        case .requestTarget: output += "\"@request-target\"".utf8
        case .path: output += "\"@path\"".utf8
        case .query: output += "\"@query\"".utf8
        case .queryParameter(let name): Self.append("@query-param", ";name=", name, to: &output)
        case .field(let name): Self.append(name, to: &output)
        case .wrappedField(let name): Self.append(name, ";bs", to: &output)
        case .fieldMember(let name, let key): Self.append(name, ";key=", key, to: &output)
        }
    }

    /// Appends a name, which has nothing to escape, with its parameter.
    private static func append(
        _ name: String, _ parameter: String = "", _ value: String? = nil, to output: inout [UInt8]
    ) {
        output.append(UInt8(ascii: "\""))
        output += name.utf8
        output.append(UInt8(ascii: "\""))
        output += parameter.utf8
        if let value { StructuredValue.string(value).append(to: &output) }
    }

    /// RFC 9421 §2.2.
    private static func derived(
        _ name: String, _ parameters: StructuredParameters
    ) throws(MessageSignatureError) -> Source {
        let source: Source
        switch name {
        case "@method": source = .method
        case "@authority": source = .authority
        case "@scheme": source = .scheme
        case "@target-uri": source = .targetURI
        case "@request-target": source = .requestTarget
        case "@path": source = .path
        case "@query": source = .query
        case "@query-param":
            guard parameters.all.count == 1, let name = parameters["name"]?.string else {
                throw MessageSignatureError(.signatureBadComponent, "@query-param needs the parameter 'name' alone")
            }
            return .queryParameter(name)
        case "@status", "@signature-params":
            throw MessageSignatureError(.signatureComponentNotAllowed, "a request cannot be signed with \(name)")
        default: throw MessageSignatureError(.signatureUnknownComponent, "a derived component is unknown")
        }
        guard parameters.isEmpty else { throw Self.error(for: parameters) }
        return source
    }

    /// RFC 9421 §2.1.
    private static func field(
        _ name: String, _ parameters: StructuredParameters
    ) throws(MessageSignatureError) -> Source {
        guard !name.isEmpty, name.utf8.allSatisfy({ Token.isMember($0) && ASCII.lowered($0) == $0 }) else {
            throw MessageSignatureError(.signatureBadComponent, "a component is not a field name in lower case")
        }
        guard let parameter = parameters.all.first else { return .field(name) }
        guard parameters.all.count == 1 else { throw Self.error(for: parameters) }
        switch (parameter.key, parameter.value) {
        case ("bs", .boolean(true)): return .wrappedField(name)
        case ("key", .string(let key)): return .fieldMember(name, key: key)
        case ("bs", _), ("key", _):
            throw MessageSignatureError(.signatureBadComponent, "a component's parameter has another type")
        default: throw Self.error(for: parameters)
        }
    }

    private static func error(for parameters: StructuredParameters) -> MessageSignatureError {
        if parameters["req"] != nil {
            return MessageSignatureError(.signatureComponentNotAllowed, "'req' is for responses")
        }
        return MessageSignatureError(.signatureUnsupportedComponent, "a component's parameters are not supported")
    }
}
