// Types of objects that tell the collector of Python what they refer to in odd ways. Each is one that
// the collector itself survives.

#include <Python.h>
#include <unistd.h>

typedef struct {
    PyObject_HEAD
    PyObject *held;
} Object;

#define HELD(object) (((Object *)(object))->held)

static int no_object_of_the_collector(PyObject *self, visitproc visit, void *arg) {
    static PyObject *number;
    if (!number) number = PyLong_FromLong(123456789);
    return visit(number, arg);
}

static int itself(PyObject *self, visitproc visit, void *arg) { return visit(self, arg); }

static int many_times(PyObject *self, visitproc visit, void *arg) {
    for (long at = 0; at < 200000000; at++) {
        int stops = visit(HELD(self), arg);
        if (stops) return stops;
    }
    return 0;
}

static int many_times_to_the_end(PyObject *self, visitproc visit, void *arg) {
    for (long at = 0; at < 50000000; at++) visit(HELD(self), arg);
    return 0;
}

static int another_number(PyObject *self, visitproc visit, void *arg) {
    int stops = visit(HELD(self), arg);
    return stops ? stops : 7;
}

static int an_error(PyObject *self, visitproc visit, void *arg) {
    PyErr_SetString(PyExc_ValueError, "an error of tp_traverse");
    return visit(HELD(self), arg);
}

static int without_the_lock(PyObject *self, visitproc visit, void *arg) {
    Py_BEGIN_ALLOW_THREADS;
    usleep(2000);
    Py_END_ALLOW_THREADS;
    return visit(HELD(self), arg);
}

static int a_new_object(PyObject *self, visitproc visit, void *arg) {
    PyObject *made = PyList_New(0);
    int stops = visit(made, arg);
    Py_DECREF(made);
    return stops ? stops : visit(HELD(self), arg);
}

static int clear(PyObject *self) {
    Py_CLEAR(HELD(self));
    return 0;
}

static void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static int init(PyObject *self, PyObject *args, PyObject *names) {
    if (!PyArg_ParseTuple(args, "O", &HELD(self))) return -1;
    Py_INCREF(HELD(self));
    return 0;
}

#define TYPE(name) {#name, name}
static const struct {
    const char *name;
    traverseproc traverse;
} TYPES[] = {
    TYPE(no_object_of_the_collector), TYPE(itself),         TYPE(many_times),
    TYPE(many_times_to_the_end),      TYPE(another_number), TYPE(an_error),
    TYPE(without_the_lock),           TYPE(a_new_object),
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "broken", NULL, -1, NULL};

PyMODINIT_FUNC PyInit_broken(void) {
    PyObject *module = PyModule_Create(&definition);
    for (size_t at = 0; module && at < sizeof TYPES / sizeof *TYPES; at++) {
        PyType_Slot slots[] = {
            {Py_tp_traverse, TYPES[at].traverse}, {Py_tp_clear, clear}, {Py_tp_dealloc, dealloc},
            {Py_tp_init, init}, {Py_tp_new, PyType_GenericNew}, {0, NULL},
        };
        unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
        PyType_Spec spec = {TYPES[at].name, sizeof(Object), 0, flags, slots};
        PyModule_AddObject(module, TYPES[at].name, PyType_FromSpec(&spec));
    }
    return module;
}
