/// A page in place of the document of an error response.
package struct ErrorPage: Sendable {
    /// Its media type, and what else the page needs.
    package let fields: [(name: String, value: String)]
    package let body: [UInt8]

    package init(fields: [(name: String, value: String)], body: [UInt8]) {
        self.fields = fields
        self.body = body
    }
}
