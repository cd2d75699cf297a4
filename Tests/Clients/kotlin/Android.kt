// The part of Android that the guide uses.
package android.content

open class Context

class Intent(val data: android.net.Uri?)
