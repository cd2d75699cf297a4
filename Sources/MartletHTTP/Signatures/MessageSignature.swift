/// The signature of a request (RFC 9421 §4): parsed strictly, not yet verified.
package struct MessageSignature: Sendable {
    /// The maximum length of `nonce`, `keyid`, `alg` and `tag` in bytes.
    package static let maximumTextBytes = 256
    /// The maximum number of covered components. RFC 9421 sets none; whoever signs needs some ten.
    package static let maximumComponents = 32

    package let components: [SignatureComponent]
    /// The name of the key.
    package let keyID: String
    package let nonce: String?
    package let tag: String?
    /// The signature itself.
    package let signature: [UInt8]
    let algorithm: String?
    /// In seconds of Unix time.
    package let created: Int64?
    let expires: Int64?
    /// The covered components and all parameters, serialized.
    private let parameters: [UInt8]

    /// Parses the two fields of a request, each with all its lines joined with commas; an absent one is empty.
    ///
    /// - Throws: `signature.missing` if both are empty, `signature.repeated` for more than one label,
    ///   `signature.label_mismatch`, `signature.malformed`, `signature.too_many`, or one of the codes of components and
    ///   parameters.
    package init(input: [UInt8], signature: [UInt8]) throws(MessageSignatureError) {
        if let plain = Self(plain: input, signature) {
            self = plain
        } else {
            try self.init(parsing: input, signature)
        }
    }

    /// Parses fields of every form.
    init(parsing input: [UInt8], _ signature: [UInt8]) throws(MessageSignatureError) {
        let inputs = try Self.dictionary(input, "Signature-Input")
        let signatures = try Self.dictionary(signature, "Signature")
        guard !inputs.isEmpty || !signatures.isEmpty else {
            throw MessageSignatureError(.signatureMissing, "there is no signature")
        }
        guard inputs.count <= 1, signatures.count <= 1 else {
            throw MessageSignatureError(.signatureRepeated, "there are several signatures")
        }
        guard let input = inputs.first, let signature = signatures.first, input.key == signature.key else {
            throw MessageSignatureError(.signatureLabelMismatch, "Signature-Input and Signature do not belong together")
        }
        guard let list = input.member.innerList, let item = signature.member.item, let bytes = item.value.bytes,
            item.parameters.isEmpty
        else { throw MessageSignatureError(.signatureMalformed, "Signature-Input or Signature has another type") }
        self.signature = bytes
        components = try Self.components(list.items)
        var parameters: [UInt8] = []
        list.append(to: &parameters)
        self.parameters = parameters
        for parameter in list.parameters.all where !Self.known.contains(parameter.key) {
            throw MessageSignatureError(.signatureUnknownParameter, "the parameter '\(parameter.key)' is unknown")
        }
        created = try Self.time("created", list.parameters)
        expires = try Self.time("expires", list.parameters)
        nonce = try Self.text("nonce", list.parameters)
        algorithm = try Self.text("alg", list.parameters)
        tag = try Self.text("tag", list.parameters)
        guard let keyID = try Self.text("keyid", list.parameters) else {
            throw MessageSignatureError(.signatureKeyMissing, "the signature names no key")
        }
        self.keyID = keyID
    }

    /// Reads two fields of the form that nearly all clients write, without making structured fields of them: one label,
    /// components without parameters, known parameters of the right type, and no byte that their serialization does not
    /// have, so that their text is what was signed.
    /// - Returns: `nil` for every other form, valid or not: it is parsed as a whole then.
    init?(plain input: [UInt8], _ signature: [UInt8]) {
        guard input.count <= StructuredField.maximumBytes, signature.count <= StructuredField.maximumBytes else {
            return nil
        }
        var text = PlainSignatureText(input)
        guard let label = text.key(), text.skip("="), text.skip("(") else { return nil }
        var components: [SignatureComponent] = []
        components.reserveCapacity(8)
        while !text.skip(")") {
            guard components.isEmpty || text.skip(" "), components.count < Self.maximumComponents,
                let name = text.string(), let component = try? SignatureComponent(named: name),
                !components.contains(component)
            else { return nil }
            components.append(component)
        }
        var (created, expires): (Int64?, Int64?)
        var (nonce, algorithm, keyID, tag): (String?, String?, String?, String?)
        while text.skip(";") {
            guard let name = text.key(), text.skip("=") else { return nil }
            let isRead =
                switch name {
                case "created": text.read(&created)
                case "expires": text.read(&expires)
                case "nonce": text.read(&nonce)
                case "alg": text.read(&algorithm)
                case "keyid": text.read(&keyID)
                case "tag": text.read(&tag)
                default: false
                }
            guard isRead else { return nil }
        }
        var value = PlainSignatureText(signature)
        guard text.isAtEnd, let keyID, value.key() == label, value.skip("="), let bytes = value.byteSequence(),
            value.isAtEnd
        else { return nil }
        (self.components, self.keyID, self.nonce, self.tag) = (components, keyID, nonce, tag)
        (self.created, self.expires, self.algorithm) = (created, expires, algorithm)
        self.signature = bytes
        // After the label and its equals sign.
        parameters = Array(input[(label.utf8.count + 1)...])
    }

    /// RFC 9421 §2.3. One that is added later may restrict what a signature means, so that it is rejected here.
    private static let known: Set = ["created", "expires", "nonce", "alg", "keyid", "tag"]

    private static func dictionary(
        _ value: [UInt8], _ name: String
    ) throws(MessageSignatureError) -> [StructuredField.Entry] {
        do throws(StructuredFieldError) {
            return try StructuredField.dictionary(value, maximumItems: maximumComponents)
        } catch {
            guard error.code != .structuredFieldTooMany else {
                throw MessageSignatureError(.signatureTooMany, "\(name) has too many parts")
            }
            throw MessageSignatureError(.signatureMalformed, "\(name): \(error.message)")
        }
    }

    private static func components(_ items: [StructuredItem]) throws(MessageSignatureError) -> [SignatureComponent] {
        var components: [SignatureComponent] = []
        components.reserveCapacity(items.count)
        for item in items {
            let component = try SignatureComponent(item)
            guard !components.contains(component) else {
                throw MessageSignatureError(.signatureRepeatedComponent, "a component is covered twice")
            }
            components.append(component)
        }
        return components
    }

    private static func time(
        _ name: String, _ parameters: StructuredParameters
    ) throws(MessageSignatureError) -> Int64? {
        guard let value = parameters[name] else { return nil }
        guard let time = value.integer else {
            throw MessageSignatureError(.signatureBadParameter, "'\(name)' is not an integer")
        }
        return time
    }

    private static func text(
        _ name: String, _ parameters: StructuredParameters
    ) throws(MessageSignatureError) -> String? {
        guard let value = parameters[name] else { return nil }
        guard let text = value.string, (1...maximumTextBytes).contains(text.utf8.count) else {
            throw MessageSignatureError(.signatureBadParameter, "'\(name)' is not a string, empty or too long")
        }
        return text
    }

    /// Whether it covers all values of a field as they are.
    /// - Parameter name: in lower case.
    package func coversField(_ name: String) -> Bool { components.contains { $0.source == .field(name) } }

    /// The signed bytes: the signature base (RFC 9421 §2.5) of a request.
    /// - Throws: `signature.component_missing`, or `signature.component_malformed` for a value with other bytes than
    ///   printable ASCII and tabs, such as a line break that would forge another line of the base.
    package func base(of request: SignedRequest) throws(MessageSignatureError) -> [UInt8] {
        var base: [UInt8] = []
        base.reserveCapacity(2 * parameters.count + 256)
        var values = SignedValues(of: request, for: components)
        for component in components {
            component.appendIdentifier(to: &base)
            base += ": ".utf8
            let start = base.count
            try values.append(component.source, to: &base)
            guard base[start...].allSatisfy({ $0 &- 0x20 < 0x5F || $0 == 0x09 }) else {
                throw MessageSignatureError(.signatureComponentMalformed, "a covered component is not printable ASCII")
            }
            base.append(UInt8(ascii: "\n"))
        }
        base += "\"@signature-params\": ".utf8
        base += parameters
        return base
    }
}
