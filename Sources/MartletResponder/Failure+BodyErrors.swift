internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// What is invalid in the members of a body.
extension Failure {
    /// Writes the errors of a body.
    @inline(never)
    func writeErrors(into body: inout ByteBuffer) {
        let errors = bodyErrors.map { error in
            JSONValue.object(["pointer": .string(error.pointer), "code": .string(error.code.rawValue)])
        }
        body.append(",\"detail\":")
        body.append(JSON.write(.string(bodyErrors.first?.detail ?? "")))
        body.append(",\"errors\":")
        body.append(JSON.write(.array(errors)))
    }
}
