/// Reads and writes JSON (RFC 8259) as bytes.
public enum JSON {
    /// Reads one document, strictly: UTF-8 without a byte order mark, no repeated names, no half surrogates, nothing behind it.
    ///
    /// - Throws: `JSONError` with one of the `json.` codes.
    public static func parse(_ bytes: [UInt8], limits: JSONLimits) throws(JSONError) -> JSONValue {
        guard bytes.count <= limits.maximumBytes else { throw JSONError(.jsonTooLarge, at: limits.maximumBytes) }
        var parser = JSONParser(bytes, maximumDepth: limits.maximumDepth)
        return try parser.document()
    }

    /// Reads one document that is an object, as strictly, and keeps its texts as secrets.
    ///
    /// No text of the object itself ever becomes a `String`; those within arrays and objects do.
    /// - Returns: `nil` for a document that is something else.
    /// - Throws: `JSONError` as ``parse(_:limits:)``.
    package static func members(of bytes: [UInt8], limits: JSONLimits) throws(JSONError) -> [JSONMember]? {
        guard bytes.count <= limits.maximumBytes else { throw JSONError(.jsonTooLarge, at: limits.maximumBytes) }
        var parser = JSONParser(bytes, maximumDepth: limits.maximumDepth)
        return try parser.topMembers()
    }

    /// Writes a value without white space, members in their order.
    public static func write(_ value: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        writer.write(value)
        return writer.bytes
    }

    /// Writes an object without white space.
    public static func write(_ object: JSONObject) -> [UInt8] { write(.object(object)) }
}
