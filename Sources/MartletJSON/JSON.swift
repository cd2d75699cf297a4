/// Parses and writes JSON (RFC 8259) as bytes.
public enum JSON {
    /// Parses one document strictly: UTF-8 without byte order mark, duplicate names, lone surrogates or trailing bytes.
    ///
    /// - Throws: `JSONError` with one of the `json.` codes.
    public static func parse(_ bytes: [UInt8], limits: JSONLimits) throws(JSONError) -> JSONValue {
        guard bytes.count <= limits.maximumBytes else { throw JSONError(.jsonTooLarge, at: limits.maximumBytes) }
        var parser = JSONParser(bytes, limits)
        return try parser.document()
    }

    /// Parses one document that is an object, as strictly, with its strings as secrets.
    ///
    /// The object's own string values never become a `String`; strings in nested arrays and objects do.
    /// - Returns: `nil` for a document that is not an object.
    /// - Throws: `JSONError` like ``parse(_:limits:)``.
    package static func members(of bytes: [UInt8], limits: JSONLimits) throws(JSONError) -> [JSONMember]? {
        guard bytes.count <= limits.maximumBytes else { throw JSONError(.jsonTooLarge, at: limits.maximumBytes) }
        var parser = JSONParser(bytes, limits)
        return try parser.topMembers()
    }

    /// Writes a value without white space; members keep their order.
    public static func write(_ value: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        writer.write(value)
        return writer.bytes
    }

    /// Writes an object without white space.
    public static func write(_ object: JSONObject) -> [UInt8] { write(.object(object)) }
}
